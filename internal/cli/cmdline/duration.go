package cmdline

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/internal/lazy"
)

// duration is a time as people type it on a command line: as Go writes it, or a
// number alone, of seconds, as timeout(1) takes it.
type duration time.Duration

// DurationVar adds a flag for a time to flags.
func DurationVar(flags *pflag.FlagSet, to *time.Duration, name string, def time.Duration, usage string) {
	*to = def
	flags.Var((*duration)(to), name, usage)
}

// Set implements pflag.Value.
func (d *duration) Set(text string) error {
	parsed, err := parseDuration(text)
	if err == nil {
		*d = duration(parsed)
	}
	return err
}

// Type implements pflag.Value.
func (d *duration) Type() string { return "duration" }

// String implements pflag.Value; none is what help leaves out.
func (d *duration) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

// alone is a number with no unit but what timeout(1) has and Go has not.
var alone = lazy.Regexp(`^([+-]?[0-9]*\.?[0-9]+|[+-]?[0-9]+\.)(d?)$`)

func parseDuration(text string) (time.Duration, error) {
	parts := alone().FindStringSubmatch(text)
	if parts == nil {
		return time.ParseDuration(text)
	}
	unit := time.Second
	if strings.HasSuffix(text, "d") {
		unit = 24 * time.Hour
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	if err != nil || math.Abs(n*float64(unit)) >= math.MaxInt64 {
		return 0, errors.New("out of range")
	}
	return time.Duration(math.Round(n * float64(unit))), nil
}
