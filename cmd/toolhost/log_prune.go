package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/journal/state"
)

func newPrune(flags *logFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prune", Short: "Drop old turns from the journals, and close those whose host died", Args: cmdline.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The configuration decides how long journals are kept, also with --state.
			if err := flags.configure("--config " + os.DevNull); err != nil {
				return err
			}
			dir, err := flags.dir()
			if err != nil {
				return err
			}
			retention, err := flags.journal.retention()
			if err != nil {
				return err
			}
			done, err := state.Prune(dir, retention)
			for _, found := range done.Found {
				tellFound(os.Stderr, found)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return exit.With(exit.Usage, err)
			}
			if err != nil {
				return hostError(err)
			}
			if _, err = fmt.Fprintf(cmd.OutOrStdout(), "dropped %d turns\n", done.Turns); err != nil {
				return err
			}
			return ownedError(dir, done.Owned)
		},
	}
	flags.journal.registerRetention(cmd)
	return cmd
}

// ownedError is about journals below the folder root that were not pruned; nil for none. The
// folder's own is a daemon's.
func ownedError(root string, dirs []string) error {
	var list []error
	for _, dir := range dirs {
		remedy := "wait for the command that runs, or end it"
		if dir == root {
			remedy = "stop the daemon first, or lower its journal.maxAge or journal.maxSize and restart it"
		}
		list = append(list, fmt.Errorf("%s is in use and was not pruned: %s", dir, remedy))
	}
	if list == nil {
		return nil
	}
	return exit.With(exit.Failed, errors.Join(list...))
}
