package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// tellsVariables marks a command that warns of mistyped variables by itself.
const tellsVariables = "tellsVariables"

// beforeCommand refuses flags without a value. It warns of mistyped variables before any
// command that people type, unless it is to be quiet.
func beforeCommand(cmd *cobra.Command, _ []string) error {
	if err := cmdline.NoneEmpty(cmd.Flags()); err != nil {
		return err
	}
	for c := cmd; c != nil; c = c.Parent() {
		if c.Hidden || c.Annotations[tellsVariables] != "" {
			return nil
		}
	}
	if quiet, err := cmd.Flags().GetBool("quiet"); err == nil && quiet {
		return nil
	}
	path, _ := cmd.Flags().GetString("config") // empty for a command without that flag
	warnOfVariables(path)
	return nil
}

// warnOfEnv is for those of --env that the call does not get. One to pass on that is
// not set may be left out, as docker run does it.
func (f *callFlags) warnOfEnv() {
	names, err := f.given.GetStringArray("env")
	if err != nil || f.quiet || f.events { // err: the command has no such flag
		return
	}
	for _, entry := range names {
		name, _, given := strings.Cut(entry, "=")
		if slices.Contains(api.CallVariables, name) {
			fmt.Fprintf(os.Stderr, "toolhost: warning: --env %s: the call does not get it: the variable %s\n", name, callargs.WrongVariable(name))
		} else if _, set := os.LookupEnv(name); !set && !given {
			fmt.Fprintf(os.Stderr, "toolhost: warning: --env %s: no such variable is set here, so the call does not get it: set it, or give --env %[1]s=VALUE\n", name)
		}
	}
}

func warnOfVariables(path string) {
	machine, err := config.ThisMachine()
	if err != nil {
		return // which the command itself will say
	}
	for _, warning := range config.UnknownVariables(machine, path) {
		fmt.Fprintln(os.Stderr, "toolhost: warning: "+terminal.OneLine(warning.String()))
	}
}
