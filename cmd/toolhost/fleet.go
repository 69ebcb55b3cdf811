//go:build !nofleet

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/supervisor"
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
	d := &daemonFleet{}
	c := fleet.Config{Supervisor: o.Supervisor, Host: o.Host, URL: s.URL, CA: s.CA, Key: key, Workers: s.Workers, WorkersOnly: s.WorkersOnly(), Logger: o.Logger}
	if s.Listen != "" {
		d.engine, err = engine.Start(engine.Config{Listen: s.Listen, Cert: s.Cert, CertKey: s.CertKey, Caller: key.Public(), Workers: s.Workers})
		if err != nil {
			return nil, err
		}
		c.Engine = d.engine
		o.Logger.Info("workers may connect", "address", d.engine.Address(), "caller", key.Public(), "workers", slices.Sorted(maps.Keys(s.Workers)))
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

var _ turn.Running = (*fleet.Call)(nil)

// daemonFleet is a fleet as the daemon knows it.
type daemonFleet struct {
	fleet  *fleet.Fleet
	engine *engine.Engine
}

func (d *daemonFleet) Start(ctx context.Context, r supervisor.Request) turn.Running {
	return d.fleet.Start(ctx, r)
}

func (d *daemonFleet) Workers() []api.Worker { return d.fleet.Workers() }

func (d *daemonFleet) Close() (err error) {
	if d.fleet != nil {
		err = d.fleet.Close()
	}
	if d.engine != nil {
		d.engine.Close()
	}
	return err
}

func newFleet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fleet", Short: "Make keys for a fleet, and see its workers",
		Long: "Make keys for a fleet: a daemon whose calls are made by workers on other machines\n(toolhost worker), and see the workers of a daemon.",
		Args: callargs.Command,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "key FILE", Short: "Print the public key of FILE, which is made if it is missing",
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
	cmd.AddCommand(newFleetWorkers(), newFleetKeys(), newFleetNATSConfig())
	return cmd
}

func newFleetWorkers() *cobra.Command {
	var flags remoteFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "workers [flags]", Short: "List the workers of the daemon's fleet",
		Long: `List the workers of the daemon's fleet that were heard within the hour. A worker is
taking calls, draining (it ends what it has), or suspect: it was not heard for 1.5 s, or
does not hear the daemon.`,
		Args: callargs.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.ask(func(daemon *remote) error {
				list, err := daemon.Workers(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), list, false)
				}
				return printWorkers(cmd.OutOrStdout(), list.Workers)
			})
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what GET /api/workers answers")
	return cmd
}

func printWorkers(w io.Writer, list []api.Worker) error {
	rows := [][]string{{"WORKER", "STATE", "FREE", "SLOTS", "SILENT", "LABELS"}}
	for _, each := range list {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(each.Labels)) {
			labels = append(labels, name+"="+each.Labels[name])
		}
		rows = append(rows, []string{
			each.Name, each.State, strconv.Itoa(each.Free), strconv.Itoa(each.Slots),
			(time.Duration(each.SilentMs) * time.Millisecond).Round(100 * time.Millisecond).String(), terminal.Cell(cmp.Or(strings.Join(labels, " "), "-")),
		})
	}
	return present.Table(w, rows, 2)
}
