package budget

import (
	"math"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/lazy"
)

// Infinite is the timeout that never expires. It is a marker, not a length of
// time: show it with [Format] and encode it with [Milliseconds], never as a
// number of nanoseconds.
const Infinite time.Duration = math.MaxInt64

const infiniteWord = "infinite"

// MeansNoLimit reports whether word is one that people may write for no limit. Such
// words are not timeouts: see [MeansInfinite].
func MeansNoLimit(word string) bool {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "none", "never", "no", "off", "unlimited", "inf", "forever", "disabled", "false", "null":
		return true
	}
	return false
}

// MeansInfinite reports whether word means [Infinite]: toolhost's word, or systemd's.
func MeansInfinite(word string) bool {
	word = strings.ToLower(strings.TrimSpace(word))
	return word == infiniteWord || word == "infinity"
}

// LongestDuration is the longest duration in whole hours, some 292 years.
const LongestDuration = "2562047h"

// withUnits matches a duration in Go's notation, of any length.
var withUnits = lazy.Regexp(`^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)

// IsTooLong reports whether text is a duration with units, but too long for a
// time.Duration (some minutes more than [LongestDuration]).
func IsTooLong(text string) bool {
	if !withUnits().MatchString(text) {
		return false
	}
	_, err := time.ParseDuration(text)
	return err != nil
}

// Format formats d for people: "infinite" for [Infinite], otherwise Go's notation
// without zero units at the end ("2m", not "2m0s").
func Format(d time.Duration) string {
	if d == Infinite {
		return infiniteWord
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Milliseconds returns d in whole milliseconds, for encoding. [Infinite] becomes 0;
// any other duration is rounded away from zero, so that a short one does not become
// 0.
func Milliseconds(d time.Duration) int64 {
	if d == Infinite {
		return 0
	}
	ms := d / time.Millisecond
	switch rest := d % time.Millisecond; {
	case rest > 0:
		ms++
	case rest < 0:
		ms--
	}
	return int64(ms)
}

// add sums two durations of zero or more; on overflow it returns Infinite.
func add(a, b time.Duration) time.Duration {
	if a > Infinite-b {
		return Infinite
	}
	return a + b
}
