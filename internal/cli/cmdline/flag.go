package cmdline

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/budget"
)

// FlagError rewords the errors of flags for cobra's SetFlagErrorFunc: it says
// what a value must be, or where the flags are listed.
func FlagError(cmd *cobra.Command, err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case !ok:
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	}
	want := "a " + wrong.GetFlag().Value.Type()
	switch wrong.GetFlag().Value.Type() {
	case "duration":
		if outOfRange(wrong.GetFlag(), wrong.GetValue()) {
			return fmt.Errorf("--%s %q is out of range: give %s at most", wrong.GetFlag().Name, wrong.GetValue(), budget.LongestDuration)
		}
		want = "a duration: " + durationWanted(wrong.GetFlag(), wrong.GetValue())
	case "int", "int64", "uint", "uint64":
		want = "a whole number"
	case "bool":
		want = "true or false"
	}
	return fmt.Errorf("--%s %q is not %s", wrong.GetFlag().Name, wrong.GetValue(), want)
}

// NoneEmpty refuses a flag that was given with nothing, mostly a variable that is not
// set: left out it would mean its default, which may be more.
func NoneEmpty(given *pflag.FlagSet) (err error) {
	given.Visit(func(flag *pflag.Flag) {
		if err == nil && empty(flag.Value) {
			err = fmt.Errorf("--%s is empty: give it a value, or leave it out", flag.Name)
		}
	})
	return err
}

func empty(value pflag.Value) bool {
	if list, ok := value.(pflag.SliceValue); ok {
		return len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
	}
	return value.String() == ""
}

// outOfRange reports whether a value that flag has refused is a duration all the same.
func outOfRange(flag *pflag.Flag, value string) bool {
	_, ours := flag.Value.(*duration)
	return budget.IsTooLong(value) || ours && alone().MatchString(value)
}

// durationWanted says what to give instead of value. No limit is the default of
// some flags, and of --timeout a matter of the configuration.
func durationWanted(flag *pflag.Flag, value string) string {
	want := "give a number with its unit, such as 30s, 5m or 1h30m"
	if _, ours := flag.Value.(*duration); ours {
		want = "give a number of seconds, or one with its unit, such as 30s, 5m or 1h30m"
	}
	known := budget.MeansInfinite(value)
	if !known && !budget.MeansNoLimit(value) {
		return want
	}
	if !known || endless[flag.Name] == "" {
		want = "leave the flag out for its default, or " + want
	}
	if where := endless[flag.Name]; where != "" {
		want += "; no limit at all is for " + where
	}
	return want
}

// endless are the places for no limit where a flag cannot ask for it.
var endless = map[string]string{
	"timeout":        "a tool's entry in toolhost.yaml (timeout: infinite)",
	"client-timeout": "toolhost.yaml (mcp: {clientTimeout: infinite})",
	"retain":         "toolhost.yaml (journal: {maxAge: infinite})",
}
