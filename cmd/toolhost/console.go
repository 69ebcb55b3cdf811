package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
)

// newConsole prints the link and opens no browser: the link would stand in the
// argv of a program, which every user of the machine can read.
func newConsole() *cobra.Command {
	return daemonCommand(&cobra.Command{
		Use: "console [flags]", Short: "Print a link that opens the daemon's web console, once",
		Long: `Print a link that opens the daemon's web console in one browser, once. Anyone with
the link may do what you may: do not share it. It is valid for two minutes. The
daemon must listen on TCP: browsers cannot use unix sockets.`,
		Args: cmdline.Words(0),
	}, func(cmd *cobra.Command, daemon *remote, _ []string) error {
		link, err := daemon.LoginLink(cmd.Context())
		if err != nil {
			return err
		}
		if link.URL == "" {
			return exit.With(exit.Failed, errors.New("the daemon has no address for browsers: set listen: 127.0.0.1:7070 in toolhost.yaml (and publicUrl, if it listens on all addresses), then restart it"))
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), link.URL)
		return err
	})
}
