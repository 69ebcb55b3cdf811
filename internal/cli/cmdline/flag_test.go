package cmdline

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestFlagErrorsNameWhatIsWanted(t *testing.T) {
	for arg, want := range map[string]string{
		"--for=5":         `--for "5" is not a duration: give a number with its unit, such as 30s, 5m or 1h30m`,
		"--for=99999999h": `--for "99999999h" is out of range: give 2562047h at most`,
		"--many=x":        `--many "x" is not a whole number`,
		"--quiet=x":       `--quiet "x" is not true or false`,
		"--nosuch":        "unknown flag: --nosuch: see x --help",
		"--for":           "flag needs an argument: --for: see x --help",
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

// No limit is nothing that a flag can ask for; where it can be had is told.
func TestFlagsTellNoLimitApart(t *testing.T) {
	const (
		entry = "; no limit at all is for a tool's entry in toolhost.yaml (timeout: infinite)"
		give  = "give a number of seconds, or one with its unit, such as 30s, 5m or 1h30m"
	)
	for arg, want := range map[string]string{
		"--timeout=infinite": `--timeout "infinite" is not a duration: ` + give + entry,
		"--timeout=none":     `--timeout "none" is not a duration: leave the flag out for its default, or ` + give + entry,
		"--deadline=none":    `--deadline "none" is not a duration: leave the flag out for its default, or ` + give,
		"--timeout=soon":     `--timeout "soon" is not a duration: ` + give,

		"--timeout=99999999h":    `--timeout "99999999h" is out of range: give 2562047h at most`,
		"--timeout=2562047h48m":  `--timeout "2562047h48m" is out of range: give 2562047h at most`,
		"--timeout=-99999999h":   `--timeout "-99999999h" is out of range: give 2562047h at most`,
		"--deadline=99999999999": `--deadline "99999999999" is out of range: give 2562047h at most`,
		"--deadline=999999d":     `--deadline "999999d" is out of range: give 2562047h at most`,
	} {
		cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, Run: func(*cobra.Command, []string) {}}
		var d time.Duration
		DurationVar(cmd.Flags(), &d, "timeout", 0, "")
		DurationVar(cmd.Flags(), &d, "deadline", 0, "")
		cmd.SetFlagErrorFunc(FlagError)
		cmd.SetArgs([]string{arg})
		if err := cmd.Execute(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}
