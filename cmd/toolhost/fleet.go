//go:build !nofleet

package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/doctor"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/fleetops"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// fleetCommands are those of a fleet.
func fleetCommands() []*cobra.Command { return []*cobra.Command{newWorker(), newFleet()} }

// What other commands have of fleets; fleet_off.go is of a build without them.
var (
	checkFleetKeys = fleetops.CheckKeys
	checkFleet     = fleetops.CheckTools
	fleetWarnings  = fleetops.Warnings
)

func openFleet(o daemon.FleetOptions) (daemon.Fleet, error) {
	return fleetops.Open(o, readVersion().Version)
}

// examineFleet asks the daemon that runs the configured fleet about its workers.
func examineFleet(ctx context.Context, flags remoteFlags) []doctor.Finding {
	loaded, err := readFleet(flags.config)
	if err != nil {
		return []doctor.Finding{doctor.Fail("fleet", err.Error(), "")}
	}
	var list api.Workers
	err = flags.ask(func(daemon *remote) (err error) {
		list, err = daemon.Workers(ctx)
		return err
	})
	return fleetops.Examine(loaded, readVersion().Version, list, err)
}

// readFleet reads a configuration that has a fleet.
func readFleet(path string) (*config.Loaded, error) {
	loaded, err := config.Load(config.Options{Path: path})
	switch {
	case err != nil:
		return nil, configError(err)
	case loaded.Path == "":
		return nil, exit.Usagef("the configuration has no fleet: %s", noFile())
	case !loaded.Fleet.On():
		return nil, exit.Usagef("the configuration has no fleet: set fleet: {listen: ADDRESS} or {url: URL} in %s, or name another file with --config", loaded.Path)
	}
	return loaded, nil
}

func newFleet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fleet", Short: "Make keys for a fleet, and see, drain and remove its workers",
		Long: "Make keys for a fleet: a daemon whose calls are made by workers on other machines\n(toolhost worker), and see, drain and remove the workers of a daemon.",
		Args: cmdline.Command,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFleetMakeKey(), newFleetWorkers(), newFleetDrain(), newFleetRemove(), newFleetKeys(), newFleetNATSConfig())
	return cmd
}

func newFleetMakeKey() *cobra.Command {
	return &cobra.Command{
		Use: "key FILE", Short: "Print the public key in FILE, and create the key if FILE does not exist",
		Long: `Print the public key of FILE. If FILE does not exist, a new key is made and kept in it,
for its owner alone. A worker and a daemon know each other by these keys.`,
		Example: "  toolhost fleet key worker.key",
		Args:    cmdline.Words(1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fleetops.MakeKey(args[0]); err != nil {
				return hostError(err)
			}
			key, err := fleet.ReadKey(args[0])
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key.Public())
			return err
		},
	}
}

// partiesCommand is a command for the configured fleet's keys.
func partiesCommand(cmd *cobra.Command, do func(cmd *cobra.Command, p fleetops.Parties) error) *cobra.Command {
	path := cmd.Flags().String("config", "", "read this `FILE`")
	folder := cmd.Flags().String("state", "", daemonStateUsage)
	cmd.Args = cmdline.Words(0)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := readFleet(*path)
		if err != nil {
			return err
		}
		loaded.State = cmp.Or(*folder, loaded.State)
		p, err := fleetops.ReadParties(loaded)
		if err != nil {
			return exit.With(exit.Usage, err)
		}
		return do(cmd, p)
	}
	return cmd
}

func newFleetKeys() *cobra.Command {
	return partiesCommand(&cobra.Command{
		Use: "keys [flags]", Short: "List the public keys of the daemon and its workers",
		Long: "List the public keys of the daemon and of the workers that the configuration names.",
	}, func(cmd *cobra.Command, p fleetops.Parties) error {
		return p.Print(cmd.OutOrStdout())
	})
}

func newFleetNATSConfig() *cobra.Command {
	return partiesCommand(&cobra.Command{
		Use: "nats-config [flags]", Short: "Print the settings with which your own nats-server serves the fleet",
		Long: `Print what a nats-server of your own needs in its configuration to be the fleet's
engine: the public key and the rights of the daemon and of each worker that toolhost.yaml
names, but for those that were removed. The file is for an include; listen and tls are
yours to set. Several daemons share one list of users: of two includes the servers take
the later one's.`,
		Example: "  toolhost fleet nats-config > fleet.conf",
	}, func(cmd *cobra.Command, p fleetops.Parties) error {
		_, err := fmt.Fprint(cmd.OutOrStdout(), p.NATSConfig())
		return err
	})
}

func newFleetWorkers() *cobra.Command {
	var asJSON bool
	cmd := daemonCommand(&cobra.Command{
		Use: "workers [flags]", Short: "List the workers of the daemon's fleet",
		Long: `List the workers of the daemon's fleet that were heard within the hour. A worker is
taking calls, draining (it ends what it has), drained (it has none of this daemon's calls
left, and goes on for other daemons), suspect (it was not heard for 1.5 s, or does not
hear the daemon), or incompatible: it is of a version that speaks another protocol, and
gets no calls.`,
		Args: cmdline.Words(0),
	}, func(cmd *cobra.Command, daemon *remote, _ []string) error {
		list, err := daemon.Workers(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return present.JSON(cmd.OutOrStdout(), list, false)
		}
		return fleetops.PrintWorkers(cmd.OutOrStdout(), list)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what GET /api/workers answers")
	return cmd
}

func newFleetDrain() *cobra.Command {
	var wait bool
	cmd := daemonCommand(&cobra.Command{
		Use: "drain [flags] WORKER", Short: "Drain a worker: it takes no more calls, and ends when it has none",
		Long: `Have a worker of the daemon's fleet take no more calls, and end with status 0 when those
that it has are over and their results are taken. Calls go elsewhere until it is started
again. SIGTERM at the worker does the same, but for --stop-wait at most.

A worker that other daemons have calls made by as well goes on for these: it takes no more
calls of this daemon, and ends once all have drained it. Its owner can let a daemon end it
alone, with --drain-by.`,
		Example: "  toolhost fleet drain --wait w1",
		Args:    cmdline.Words(1, "WORKER"),
	}, func(cmd *cobra.Command, daemon *remote, args []string) error {
		if err := daemon.DrainWorker(cmd.Context(), args[0]); err != nil || !wait {
			return err
		}
		return fleetops.AwaitDrain(cmd.Context(), daemon.Client, args[0])
	})
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the worker has ended, or has none of this daemon's calls and goes on for others")
	return cmd
}

func newFleetRemove() *cobra.Command {
	return daemonCommand(&cobra.Command{
		Use: "remove [flags] WORKER", Short: "Take a worker out of the fleet at once, and for good",
		Long: `Take a worker out of the daemon's fleet at once, and for good: its connections are
ended, its calls are lost and end with its lease, and its key does not let it in any more,
though the configuration names it. To have it back, give it another key. Where the fleet
has NATS servers of its own (fleet: url), take the key out of their configuration as well.`,
		Example: "  toolhost fleet remove w1",
		Args:    cmdline.Words(1, "WORKER"),
	}, func(cmd *cobra.Command, daemon *remote, args []string) error {
		if err := daemon.RemoveWorker(cmd.Context(), args[0]); err != nil {
			return err
		}
		also := ""
		if list, err := daemon.Workers(cmd.Context()); err == nil && list.Engine.URL != "" {
			also = ", and give the NATS servers what toolhost fleet nats-config prints: they let its key in until then"
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "removed %s: take it out of fleet.workers, too%s\n", terminal.OneLine(args[0]), also)
		return err
	})
}
