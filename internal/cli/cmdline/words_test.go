package cmdline

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestWordsNamesWhatIsMissing(t *testing.T) {
	for _, test := range []struct {
		most    int
		example string
		words   []string
		want    string
	}{
		{Many, "  x run a\n  x run b", nil, "TOOL is missing: give it, as in: x run a"},
		{Many, "", nil, "TOOL is missing: give it, as in: x run TOOL [key=value ...]"},
		{Many, "", []string{"a", "b", "c"}, ""},
		{1, "", []string{"a"}, ""},
		{1, "  x run a", []string{"a", "b c"}, `"b c" is one word too many: leave it out, as in: x run a`},
		{1, "  x run a", []string{""}, "word 1 is empty: give it, as in: x run a"},
		{Many, "", []string{"a", ""}, ""},
		{1, "", []string{"a", "x.yaml"}, `"x.yaml" is one word too many: name the configuration with --config, as in: x run --config toolhost.yaml`},
	} {
		parent := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true}
		parent.PersistentFlags().String("config", "", "")
		parent.AddCommand(&cobra.Command{
			Use: "run TOOL [key=value ...]", Example: test.example, DisableFlagsInUseLine: true,
			Args: Words(test.most, "TOOL"), Run: func(*cobra.Command, []string) {},
		})
		parent.SetArgs(append([]string{"run"}, test.words...))
		err := parent.Execute()
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%q: %v, want %s", test.words, err, test.want)
		}
	}
}

func TestUnknownCommands(t *testing.T) {
	for word, want := range map[string]string{
		"rum":    `unknown command "rum": did you mean run?`,
		"nosuch": `unknown command "nosuch": see x --help`,
	} {
		root := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, Args: Command, Run: func(*cobra.Command, []string) {}}
		root.AddCommand(&cobra.Command{Use: "run", Run: func(*cobra.Command, []string) {}})
		root.SetArgs([]string{word})
		if err := root.Execute(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Cobra's own commands refuse what they do not know, too.
func TestStandardCommands(t *testing.T) {
	for line, want := range map[string]string{
		"help":                "",
		"help run":            "",
		"help completion zsh": "",
		"help rum":            `unknown command "rum": did you mean run?`,
		"help nosuch":         `unknown command "nosuch": see x --help`,
		"help run nosuch":     `"nosuch" is one word too many: leave it out, as in: x help run`,
		"help completion ksh": `unknown command "ksh": did you mean bash or zsh or fish?`,
		"completion":          "",
		"completion bash":     "",
		"completion tcsh":     `unknown command "tcsh": did you mean bash or zsh or fish?`,
	} {
		root := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, Args: Command, Run: func(*cobra.Command, []string) {}}
		root.AddCommand(&cobra.Command{Use: "run", Run: func(*cobra.Command, []string) {}})
		root.SetOut(io.Discard)
		root.SetArgs(strings.Fields(line))
		Standard(root)
		if err := root.Execute(); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
