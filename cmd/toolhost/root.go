package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/callargs"
	"github.com/toolhost/toolhost/internal/terminal"
)

// Exit codes; the command's own code passes through exec.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitHeadless    = 4
	exitTimeout     = 124
	exitHost        = 125
	exitNotExec     = 126
	exitNotFound    = 127
	exitSignalBase  = 128
	exitAborted     = 130
	exitDescription = `Exit codes: 0 ok, 1 failed call, 2 usage or config (also what is no tool),
4 headless, 124 timeout, 125 the host itself failed, 126 and 127 exec's command not
executable or not found, 128+n died of signal n, 130 aborted; exec hands its command's
own code through.`
)

// exitError ends the command with a code; its error, if any, has one line.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func hostError(err error) error { return &exitError{exitHost, err} }

// run executes the command line and returns the exit code. Errors that no
// command made its own are usage errors: they come from the parser.
func run(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{exitUsage, err}
	}
	if exit.err != nil {
		fmt.Fprintf(os.Stderr, "toolhost: %s\n", terminal.Escape(exit.Error(), false))
	}
	return exit.code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "toolhost",
		Short:         "Run the tools that language models ask for, and end them for certain",
		Long:          "toolhost runs tools for language models: each call in its own process group,\ncgroup and sandbox, killed for certain when its time is over, and answered\nwith a result that says truthfully what happened.\n\n" + exitDescription,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(callargs.FlagError)
	root.AddCommand(
		newRun(), newExec(), newTurn(), newTools(), newExplain(), newLog(),
		newServe(), newCall(), newPs(), newTop(), newAbort(), newConsole(), newMCP(),
		newConfig(), newDoctor(), newVersion(), newAdapter(), newManual(),
	)
	return root
}
