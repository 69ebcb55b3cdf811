package daemon

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/internal/serve/httpapi"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// Fleet makes calls on other machines, as package fleet does. It is all that a build without
// fleets knows of them.
type Fleet interface {
	// Start begins one call, on this machine or another.
	Start(ctx context.Context, r supervisor.Request) turn.Running
	httpapi.Fleet
	// Calls are how many calls workers were told to start, and how many wait for a worker.
	Calls() (given, waiting int)
	// Refused is how many messages the daemon and its workers have refused.
	Refused() uint64
	Close() error
}

// FleetOptions are what a fleet is opened with.
type FleetOptions struct {
	Settings config.Fleet
	// Host is this machine's supervisor, and Supervisor its configuration.
	Host       *supervisor.Supervisor
	Supervisor supervisor.Config
	// State is the daemon's state folder; empty means none.
	State  string
	Logger hclog.Logger
}

// openFleet does nothing without settings.
func (d *daemon) openFleet(c supervisor.Config) (err error) {
	settings := d.options.Loaded.Fleet
	if !settings.On() || d.options.OpenFleet == nil {
		return nil
	}
	d.fleet, err = d.options.OpenFleet(FleetOptions{
		Settings: settings, Host: d.host, Supervisor: c, State: d.options.State, Logger: d.logger.Named("fleet"),
	})
	return err
}

// underWay is how many calls run, and how many wait for a slot, wherever that is.
func (d *daemon) underWay() (running, waiting int) {
	h := d.host.Host()
	running, waiting = h.Running, h.Waiting
	if d.fleet != nil {
		given, waits := d.fleet.Calls()
		running, waiting = running+given, waiting+waits
	}
	return running, waiting
}

// start returns what begins calls.
func (d *daemon) start() func(context.Context, supervisor.Request) turn.Running {
	if d.fleet != nil {
		return d.fleet.Start
	}
	return turn.Supervised(d.host)
}
