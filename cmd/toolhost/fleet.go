//go:build !nofleet

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/turn"
)

// fleetCommands are those of a fleet.
func fleetCommands() []*cobra.Command { return []*cobra.Command{newWorker(), newFleet()} }

// fleetKeyName is the caller's key in the state folder.
const fleetKeyName = "fleet.key"

// openFleet is the daemon's fleet.
func openFleet(o daemon.FleetOptions) (daemon.Fleet, error) {
	s := o.Settings
	key, err := callerKey(s.Key, o.State)
	if err != nil {
		return nil, err
	}
	d := &daemonFleet{keys: s.Workers, removals: removals{dir: o.State}}
	if _, err := engine.CheckKeys(key.Public(), s.Workers); err != nil {
		return nil, err
	}
	workers, removed, err := d.removals.apply(s.Workers, o.Logger)
	if err != nil {
		return nil, err
	}
	c := fleet.Config{
		Supervisor: o.Supervisor, Host: o.Host, URL: s.URL, CA: s.CA, Key: key, Workers: workers, Removed: removed,
		WorkersOnly: s.WorkersOnly(), Version: readVersion().Version, Logger: o.Logger,
	}
	if s.Listen != "" {
		d.engine, err = engine.Start(engine.Config{Listen: s.Listen, Cert: s.Cert, CertKey: s.CertKey, Caller: key.Public(), Workers: workers, Logger: o.Logger})
		if err != nil {
			return nil, err
		}
		c.Engine = d.engine
		o.Logger.Info("workers may connect", "address", d.engine.Address(), "caller", key.Public(), "workers", slices.Sorted(maps.Keys(workers)))
	} else {
		o.Logger.Info("workers are looked for", "url", s.URL, "caller", key.Public())
	}
	if d.fleet, err = fleet.Open(context.Background(), c); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// callerKey reads the key, or makes the one in the state folder.
func callerKey(path, state string) (*fleet.Key, error) {
	own, err := keyPath(path, state)
	if err == nil && path == "" {
		err = makeKey(own)
	}
	if err != nil {
		return nil, err
	}
	return fleet.ReadKey(own)
}

// keyPath is the configured file, or else the one in the state folder.
func keyPath(path, state string) (string, error) {
	if path == "" && state == "" {
		return "", errors.New("the fleet needs a key that workers know the daemon by: name its file with fleet: {key: FILE}, or have a state folder")
	}
	return cmp.Or(path, filepath.Join(state, fleetKeyName)), nil
}

// makeKey makes a key where the file is missing.
func makeKey(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	key, err := fleet.NewKey()
	if err != nil {
		return err
	}
	return key.WriteFile(path)
}

var _ interface {
	turn.Running
	turn.Processes
} = (*fleet.Call)(nil)

func newFleet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fleet", Short: "Make keys for a fleet, and see, drain and remove its workers",
		Long: "Make keys for a fleet: a daemon whose calls are made by workers on other machines\n(toolhost worker), and see, drain and remove the workers of a daemon.",
		Args: callargs.Command,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "key FILE", Short: "Print the public key in FILE, and create the key if FILE does not exist",
		Long: `Print the public key of FILE. If FILE does not exist, a new key is made and kept in it,
for its owner alone. A worker and a daemon know each other by these keys.`,
		Example: "  toolhost fleet key worker.key",
		Args:    callargs.Words(1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := makeKey(args[0]); err != nil {
				return hostError(err)
			}
			key, err := fleet.ReadKey(args[0])
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key.Public())
			return err
		},
	})
	cmd.AddCommand(newFleetWorkers(), newFleetDrain(), newFleetRemove(), newFleetKeys(), newFleetNATSConfig())
	return cmd
}
