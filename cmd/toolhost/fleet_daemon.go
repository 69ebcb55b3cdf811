//go:build !nofleet

package main

import (
	"context"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
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
