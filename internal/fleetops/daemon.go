// Package fleetops is what toolhost's commands and its daemon do with a fleet: the daemon's
// keys and workers, what of tools they can do, and how they fare. Only the commands import
// it: a build without fleets leaves it out.
package fleetops

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// daemonFleet is a fleet as the daemon knows it.
type daemonFleet struct {
	fleet    *fleet.Fleet
	engine   *engine.Engine
	keys     map[string]string // as configured, by worker
	removals removals
}

var _ interface {
	turn.Running
	turn.Processes
} = (*fleet.Call)(nil)

// Open opens the fleet of a daemon of this version.
func Open(o daemon.FleetOptions, version string) (daemon.Fleet, error) {
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
		WorkersOnly: s.WorkersOnly(), Version: version, Logger: o.Logger,
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

func (d *daemonFleet) Start(ctx context.Context, r supervisor.Request) turn.Running {
	return d.fleet.Start(ctx, r)
}

func (d *daemonFleet) Workers() (list api.Workers) {
	list.Workers = append([]api.Worker{}, d.fleet.Workers()...)
	list.Engine = d.fleet.Servers()
	list.Left, list.Removed = d.fleet.Gone()
	return list
}

func (d *daemonFleet) Calls() (given, waiting int) { return d.fleet.Calls() }

func (d *daemonFleet) Refused() uint64 { return d.fleet.Refused() }

func (d *daemonFleet) Drain(worker string) bool { return d.fleet.Drain(worker) }

func (d *daemonFleet) Knows(worker string) bool { return d.fleet.Knows(worker) }

// Remove is for good: it is on record before it is done.
func (d *daemonFleet) Remove(worker string) (known bool, err error) {
	if !d.fleet.Knows(worker) {
		return false, nil
	}
	if err := d.removals.add(worker, d.keys[worker]); err != nil {
		return true, err
	}
	d.fleet.Remove(worker)
	if d.engine != nil {
		err = d.engine.Remove(worker)
	}
	return true, err
}

func (d *daemonFleet) Close() (err error) {
	if d.fleet != nil {
		err = d.fleet.Close()
	}
	if d.engine != nil {
		d.engine.Close()
	}
	return err
}
