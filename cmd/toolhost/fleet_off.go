//go:build nofleet

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/doctor"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/tools/config"
)

func fleetCommands() []*cobra.Command { return nil }

func fleetWarnings(*config.Loaded, config.Tool) []string { return nil }

func checkFleet(*config.Loaded) error { return nil }

func checkFleetKeys(*config.Loaded) error { return nil }

func examineFleet(context.Context, remoteFlags) []doctor.Finding {
	return []doctor.Finding{doctor.Fail("fleet", "this toolhost was built without fleets (-tags nofleet)", "use another build")}
}

func openFleet(daemon.FleetOptions) (daemon.Fleet, error) {
	return nil, errors.New("this toolhost was built without fleets (-tags nofleet): take fleet out of the configuration, or use another build")
}
