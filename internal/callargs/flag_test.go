package callargs

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestFlagErrorsNameWhatIsWanted(t *testing.T) {
	for arg, want := range map[string]string{
		"--for=5":   `--for "5" is not a duration: give a number with its unit, such as 30s, 5m or 1h30m`,
		"--many=x":  `--many "x" is not a whole number`,
		"--quiet=x": `--quiet "x" is not true or false`,
		"--nosuch":  "unknown flag: --nosuch: see x --help",
		"--for":     "flag needs an argument: --for: see x --help",
	} {
		cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, Run: func(*cobra.Command, []string) {}}
		cmd.Flags().Duration("for", 0, "")
		cmd.Flags().Int("many", 0, "")
		cmd.Flags().Bool("quiet", false, "")
		cmd.SetFlagErrorFunc(FlagError)
		cmd.SetArgs([]string{arg})
		if err := cmd.Execute(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}
