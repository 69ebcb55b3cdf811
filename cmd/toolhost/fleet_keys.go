//go:build !nofleet

package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// parties are those of the configured fleet, by their public keys.
type parties struct {
	config.Fleet
	caller string
}

func readParties(path string) (p parties, err error) {
	loaded, err := config.Load(config.Options{Path: path})
	if err != nil {
		return p, configError(err)
	}
	if !loaded.Fleet.On() {
		return p, exit.Usagef("the configuration has no fleet: set fleet: {listen: ADDRESS} or {url: URL}")
	}
	state, err := (&journalFlags{byDefault: true, configured: loaded}).dir()
	if err != nil {
		return p, err
	}
	own, err := keyPath(loaded.Fleet.Key, state)
	if err != nil {
		return p, exit.With(exit.Usage, err)
	}
	key, err := fleet.ReadKey(own)
	if err != nil {
		return p, exit.With(exit.Usage, fmt.Errorf("%w: the daemon makes it when it starts, or make one with toolhost fleet key and name it with fleet: {key: FILE}", err))
	}
	return parties{loaded.Fleet, key.Public()}, nil
}

func newFleetKeys() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "keys [flags]", Short: "List the public keys of the daemon and its workers",
		Long: "List the public keys of the daemon and of the workers that the configuration names.",
		Args: callargs.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := readParties(path)
			if err != nil {
				return err
			}
			rows := [][]string{{"PARTY", "KEY"}, {"daemon", p.caller}}
			for _, name := range slices.Sorted(maps.Keys(p.Workers)) {
				rows = append(rows, []string{"worker " + name, p.Workers[name]})
			}
			return present.Table(cmd.OutOrStdout(), rows, 0)
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "read this `FILE`")
	return cmd
}

func newFleetNATSConfig() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "nats-config [flags]", Short: "Print the settings with which your own nats-server serves the fleet",
		Long: `Print what a nats-server of your own needs in its configuration to be the fleet's
engine: the public key and the rights of the daemon and of each worker that toolhost.yaml
names. The file is for an include; listen and tls are yours to set.`,
		Example: "  toolhost fleet nats-config > fleet.conf",
		Args:    callargs.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := readParties(path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), engine.NATSConfig(p.caller, p.Workers))
			return err
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "read this `FILE`")
	return cmd
}
