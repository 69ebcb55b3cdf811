// Package cmdline is what all command lines have: words and flags, and what to say of
// those that are wrong.
package cmdline

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Many is for Words: as many as there are.
const Many = math.MaxInt

// Words is for cobra.Command.Args: the words that must be there, by the names that
// the usage gives them, and how many there may be at most.
func Words(most int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, words []string) error {
		switch {
		case len(words) < len(names):
			return fmt.Errorf("%s is missing: give it, as in: %s", names[len(words)], example(cmd))
		case len(words) > most:
			return tooMany(cmd, words[most])
		case most < Many && slices.Contains(words, ""): // such as a variable of a script that is not set
			return fmt.Errorf("word %d is empty: give it, as in: %s", slices.Index(words, "")+1, example(cmd))
		}
		return nil
	}
}

func tooMany(cmd *cobra.Command, word string) error {
	if ext := filepath.Ext(word); (ext == ".yaml" || ext == ".yml") && cmd.Flag("config") != nil {
		return fmt.Errorf("%q is one word too many: name the configuration with --config, as in: %s --config toolhost.yaml", word, cmd.CommandPath())
	}
	return fmt.Errorf("%q is one word too many: leave it out, as in: %s", word, example(cmd))
}

// Command is for cobra.Command.Args of a command that only has others below it.
func Command(cmd *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(words[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q: did you mean %s?", words[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q: see %s --help", words[0], cmd.CommandPath())
}

// example is the first one of a command, else its usage.
func example(cmd *cobra.Command) string {
	first, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	if first == "" {
		return cmd.UseLine()
	}
	return first
}

// Standard adds cobra's own commands, help and completion, and has them refuse words
// that name nothing: cobra shows the root's help for these, as a success. The output of
// root must be set.
func Standard(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = knownTopic
		case "completion":
			cmd.Args = Command
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// knownTopic is for cobra.Command.Args of help: the words of a command.
func knownTopic(help *cobra.Command, words []string) error {
	cmd, rest, err := help.Root().Find(words)
	switch {
	case err != nil:
		return err
	case len(rest) == 0:
		return nil
	case cmd.HasAvailableSubCommands():
		return Command(cmd, rest)
	}
	return fmt.Errorf("%q is one word too many: leave it out, as in: %s %s", rest[0], help.CommandPath(), strings.Join(words[:len(words)-len(rest)], " "))
}
