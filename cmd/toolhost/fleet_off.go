//go:build nofleet

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/supervisor"
)

func fleetCommands() []*cobra.Command { return nil }

func fleetWarnings(*config.Loaded, supervisor.Request) []string { return nil }

func openFleet(daemon.FleetOptions) (daemon.Fleet, error) {
	return nil, errors.New("this toolhost was built without fleets (-tags nofleet): take fleet out of the configuration, or use another build")
}
