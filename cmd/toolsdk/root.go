package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/journal/state"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

const exitDescription = `Exit codes: 0 ok, 1 failed, 2 usage, or not a tool, 124 timeout of a call, 125 this machine cannot
run tools (toolhost doctor says why), 130 aborted.`

// usage makes an error one of usage.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return exit.With(exit.Usage, err)
}

// run executes the command line and returns the exit code.
func run(args []string) int { return exit.Run(newRoot(), args) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "toolsdk",
		Short:         "Write, try and pack tools for language models",
		Long:          "toolsdk is for authors of tools: it makes new projects, calls a tool and\nshows everything, tests a binary in any language against the plugin protocol,\nand packs it. docs/tool-authors.md is the tutorial.\n\n" + exitDescription,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cmdline.Command,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cmdline.NoneEmpty(cmd.Flags()) },
	}
	root.SetFlagErrorFunc(cmdline.FlagError)
	root.AddCommand(newNew(), newRun(), newDescribe(), newTest(), newPack(), newDriver(), newManual())
	return root
}

// ownFiles are those of toolhost for this user: no tool is granted them.
func ownFiles() sandbox.Own {
	folders := state.Protected()
	own := sandbox.Own{Hidden: folders, Made: folders}
	if machine, err := config.ThisMachine(); err == nil {
		files, more := machine.Standard()
		own.Fixed, own.Made = files, slices.Concat(folders, more)
	}
	return own
}

// newHost makes the supervisor of a one-shot command.
func newHost() (*supervisor.Supervisor, error) {
	signals.OutliveReader() // what is made here is removed by Close
	host, err := supervisor.New(context.Background(), supervisor.Config{Own: ownFiles})
	if err != nil {
		return nil, exit.With(exit.Host, err)
	}
	return host, nil
}
