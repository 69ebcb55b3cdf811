package callargs

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
		want = "a duration: give a number with its unit, such as 30s, 5m or 1h30m"
		if _, ours := wrong.GetFlag().Value.(*duration); ours {
			want = "a duration: give a number of seconds, or one with its unit, such as 30s, 5m or 1h30m"
		}
	case "int", "int64", "uint", "uint64":
		want = "a whole number"
	case "bool":
		want = "true or false"
	}
	return fmt.Errorf("--%s %q is not %s", wrong.GetFlag().Name, wrong.GetValue(), want)
}
