package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/terminal"
)

func newAbort() *cobra.Command {
	return daemonCommand(&cobra.Command{
		Use: "abort [flags] TURN [CALL]", Short: "Abort a turn of the daemon, or one call of it",
		Long: `Abort a turn of the daemon, or one call of it, after which the turn goes on. Running
calls get SIGTERM, and SIGKILL after their grace; a second abort kills at once. The
ids are those of toolhost ps.`,
		Example: "  toolhost abort TURN\n  toolhost abort TURN CALL",
		Args:    cmdline.Words(2, "TURN"),
	}, func(cmd *cobra.Command, daemon *remote, ids []string) error {
		err, what := error(nil), "turn "+ids[0]
		if len(ids) == 2 {
			err, what = daemon.AbortCall(cmd.Context(), ids[0], ids[1]), "call "+ids[1]+" of "+what
		} else {
			err = daemon.Abort(cmd.Context(), ids[0])
		}
		switch {
		case client.IsNotFound(err):
			return exit.With(exit.Failed, fmt.Errorf("no %s is under way: see toolhost ps", what))
		case err != nil:
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "aborting %s; again kills at once\n", terminal.OneLine(what))
		return err
	})
}
