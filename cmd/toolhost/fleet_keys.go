//go:build !nofleet

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
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
	caller  string
	removed []string // workers whose keys were removed
}

func readParties(path string) (p parties, err error) {
	loaded, err := readFleet(path)
	if err != nil {
		return p, err
	}
	caller, err := callerOf(loaded)
	if err != nil {
		return p, err
	}
	state, err := stateOf(loaded)
	if err != nil {
		return p, err
	}
	_, removed, err := (&removals{dir: state}).apply(loaded.Fleet.Workers, hclog.NewNullLogger())
	return parties{loaded.Fleet, caller, removed}, err
}

// stateOf is the daemon's state folder.
func stateOf(loaded *config.Loaded) (string, error) {
	return (&journalFlags{byDefault: true, configured: loaded}).dir()
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

// callerOf is the daemon's public key.
func callerOf(loaded *config.Loaded) (string, error) {
	state, err := stateOf(loaded)
	if err != nil {
		return "", err
	}
	own, err := keyPath(loaded.Fleet.Key, state)
	if err != nil {
		return "", exit.With(exit.Usage, err)
	}
	key, err := fleet.ReadKey(own)
	if errors.Is(err, fs.ErrNotExist) && loaded.Fleet.Key == "" {
		err = fmt.Errorf("%w; the daemon makes it when it starts, or make one with toolhost fleet key and name it with fleet: {key: FILE}", err)
	}
	if err != nil {
		return "", exit.With(exit.Usage, err)
	}
	return key.Public(), nil
}

// checkParties finds keys and a certificate of a fleet with which the daemon does not start.
// Another user than the daemon's may not read them, and cannot tell.
func checkParties(loaded *config.Loaded) error {
	f, caller := loaded.Fleet, ""
	if !f.On() {
		return nil
	}
	var problems config.Problems
	check := func(path string, err error) {
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			problems = append(problems, loaded.Problem(path, err))
		}
	}
	if f.Key != "" {
		key, err := fleet.ReadKey(f.Key)
		if check("fleet.key", err); err == nil {
			caller = key.Public()
		}
	}
	worker, err := engine.CheckKeys(caller, f.Workers)
	check("fleet.workers."+worker, err)
	if f.Cert != "" {
		_, err := engine.ReadCertificate(f.Cert, f.CertKey, time.Now())
		check("fleet.cert", err)
	}
	return problems.Err()
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
				who := "worker " + name
				if slices.Contains(p.removed, name) {
					who += ", removed"
				}
				rows = append(rows, []string{who, p.Workers[name]})
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
names, but for those that were removed. The file is for an include; listen and tls are
yours to set. Several daemons share one list of users: of two includes the servers take
the later one's.`,
		Example: "  toolhost fleet nats-config > fleet.conf",
		Args:    callargs.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := readParties(path)
			if err != nil {
				return err
			}
			for _, name := range p.removed {
				delete(p.Workers, name)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), engine.NATSConfig(p.caller, p.Workers))
			return err
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "read this `FILE`")
	return cmd
}
