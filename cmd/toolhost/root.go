package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
)

// The command's own code passes through exec.
const exitDescription = `Exit codes: 0 ok, 1 failed call, 2 usage, configuration, or not a tool,
4 nobody to ask, 124 timeout, 125 the host itself failed, 126 and 127 exec's command not
executable or not found, 128+n died of signal n, 130 aborted; exec passes on its
command's own code.`

func hostError(err error) error { return exit.With(exit.Host, err) }

// run executes the command line and returns the exit code.
func run(args []string) int { return exit.Run(newRoot(), args) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "toolhost",
		Short:         "Run the tools that language models ask for, and reliably end them",
		Long:          "toolhost runs tools for language models. Each call has its own process group,\ncgroup and sandbox. When its time is over, it and all its descendants are killed,\nand the result says truthfully what happened.\n\n" + exitDescription,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cmdline.Command,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		PersistentPreRunE: beforeCommand,
	}
	root.SetFlagErrorFunc(cmdline.FlagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", present.PageColumns)))
	root.AddCommand(
		newRun(), newExec(), newTurn(), newTools(), newExplain(), newLog(),
		newServe(), newCall(), newPs(), newTop(), newAbort(), newConsole(), newToken(), newApprovals(), newMCP(),
		newConfig(), newDoctor(), newVersion(), newAdapter(), newManual(),
	)
	root.AddCommand(fleetCommands()...)
	return root
}
