package budget

import (
	"math"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/lazy"
)

// Infinite is the timeout that never ends. It is a marker and not a length of
// time: show it with [Format] and put it on a wire with [Milliseconds], never as
// a number of nanoseconds.
const Infinite time.Duration = math.MaxInt64

const infiniteWord = "infinite"

// MeansNoLimit reports whether people may write word for no limit at all. None of
// these words is a timeout: [Infinite] has one of its own.
func MeansNoLimit(word string) bool {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "none", "never", "no", "off", "unlimited", "inf", "forever", "disabled", "false", "null":
		return true
	}
	return false
}

// MeansInfinite reports whether word is the one for [Infinite], or systemd's.
func MeansInfinite(word string) bool {
	word = strings.ToLower(strings.TrimSpace(word))
	return word == infiniteWord || word == "infinity"
}

// LongestDuration is the most that a duration can be, in whole hours; some 292 years.
const LongestDuration = "2562047h"

// withUnits is a duration as Go writes it, of whatever length.
var withUnits = lazy.Regexp(`^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)

// IsTooLong reports whether text is a duration with units, but longer than
// [LongestDuration] and some minutes.
func IsTooLong(text string) bool {
	if !withUnits().MatchString(text) {
		return false
	}
	_, err := time.ParseDuration(text)
	return err != nil
}

// Format writes d for people: "infinite" for [Infinite], otherwise Go's notation
// without empty units at the end ("2m", not "2m0s"). [Parse] reads it back.
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

// Milliseconds gives d for a wire, in whole milliseconds. [Infinite] becomes 0,
// as wires spell it; any other duration is rounded away from zero, so that a
// short one never turns into 0.
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

// add sums two durations of zero or more; what doesn't fit is Infinite.
func add(a, b time.Duration) time.Duration {
	if a > Infinite-b {
		return Infinite
	}
	return a + b
}
