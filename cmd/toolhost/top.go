package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/top"
	"github.com/toolhost/toolhost/internal/terminal"
)

func newTop() *cobra.Command {
	var flags remoteFlags
	cmd := &cobra.Command{
		Use: "top [flags]", Short: "Show what the daemon runs, live, and abort it by a key",
		Long: `Show what the daemon runs, live: each call with its elapsed and allowed time, and
the CPU and memory that its processes use. The arrows, or
j and k, choose a line; a aborts the chosen call, t its turn; again kills at once;
q quits.`,
		Args: cmdline.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			tty, err := topTerminal()
			if err != nil {
				return err
			}
			defer tty.Close()
			daemon, err := flags.dial()
			if err != nil {
				return err
			}
			defer daemon.Close()
			if _, err := daemon.Active(cmd.Context()); err != nil { // before the screen is taken
				return daemon.failure(err)
			}
			err = top.Run(cmd.Context(), daemon, top.Options{
				TTY: tty, Coloured: os.Getenv("NO_COLOR") == "",
				Problem: func(err error) string { return daemon.failure(err).Error() },
			})
			if err != nil {
				return hostError(err)
			}
			return nil
		},
	}
	flags.register(cmd)
	return cmd
}

// topTerminal is where the table is drawn: standard output has to be it.
func topTerminal() (*os.File, error) {
	if terminal.IsTerminal(os.Stdout) && os.Getenv("TERM") != "dumb" {
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			return tty, nil
		}
	}
	return nil, exit.Usagef("top needs a terminal that it can draw on: use toolhost ps, or toolhost ps --json")
}
