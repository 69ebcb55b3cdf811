package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/callargs"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/supervisor"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitTimeout     = 124
	exitHost        = 125
	exitAborted     = 130
	exitDescription = `Exit codes: 0 ok, 1 failed, 2 usage, 124 timeout of a call, 125 this machine cannot
run tools (toolhost doctor says why), 130 aborted.`
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

// usage makes an error one of usage.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

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
		fmt.Fprintf(os.Stderr, "toolsdk: %s\n", terminal.OneLine(exit.Error()))
	}
	return exit.code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "toolsdk",
		Short:         "Write, try and pack tools for language models",
		Long:          "toolsdk is for those who write tools: it makes new projects, calls a tool and\nshows everything, holds a binary in any language to the plugin protocol, and\npacks it. docs/tool-authors.md is the tutorial.\n\n" + exitDescription,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(callargs.FlagError)
	root.AddCommand(newNew(), newRun(), newDescribe(), newTest(), newPack(), newDriver(), newManual())
	return root
}

// newHost makes the supervisor of a one-shot command.
func newHost() (*supervisor.Supervisor, error) {
	host, err := supervisor.New(context.Background(), supervisor.Config{})
	if err != nil {
		return nil, &exitError{exitHost, err}
	}
	return host, nil
}
