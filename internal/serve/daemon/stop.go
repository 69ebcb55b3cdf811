package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
)

const (
	defaultStopWait = 30 * time.Second
	// pollEvery is the time between looks at whether calls still run.
	pollEvery = 50 * time.Millisecond
	// lastWords bounds the wait for clients that read their results slowly.
	lastWords = 10 * time.Second
	// stopRest is how long stopping may take beside the wait for calls.
	stopRest = time.Minute
)

func (d *daemon) stopWait() time.Duration {
	if wait := d.tools.loaded().Daemon.StopWait; wait != 0 {
		return wait
	}
	return defaultStopWait
}

// stop refuses new work, lets what runs finish for a while, and ends the rest.
// Every call has its result, and every client that waits for one gets it.
func (d *daemon) stop() {
	d.ending()
	wait := d.stopWait()
	d.api.Drain()
	d.mcp.drain()
	d.manager.stopping(wait + stopRest)
	d.finish(wait)
	d.endTurns()
	d.api.Wait() // what watchers are still to be told is there
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if err := d.server.Shutdown(ctx); err != nil {
		d.logger.Warn("clients have not read all of their answers", "error", err)
	}
	d.logger.Info("stopped")
}

// finish waits until no call runs; a signal cuts it short.
func (d *daemon) finish(wait time.Duration) {
	limit := time.NewTimer(wait)
	defer limit.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for d.busy() {
		select {
		case <-tick.C:
		case <-limit.C:
			d.logger.Warn("ending calls that still run", "waitedMs", wait.Milliseconds())
			return
		case s := <-d.options.Signals:
			d.logger.Warn("ending calls that still run", "signal", s.String())
			return
		}
	}
}

func (d *daemon) busy() bool {
	for _, t := range d.turns.Active() {
		if len(t.CurrentTools) > 0 {
			return true
		}
	}
	return false
}

// endTurns begins the kill ladder of all running calls; a signal skips the grace.
func (d *daemon) endTurns() {
	over := make(chan struct{})
	go func() {
		defer close(over)
		var all sync.WaitGroup
		all.Go(d.mcp.close)
		all.Go(d.turns.Close) // also what MCP's calls share the machine with
		all.Wait()
	}()
	for {
		select {
		case <-over:
			return
		case s := <-d.options.Signals:
			d.logger.Warn("killing calls that still run", "signal", s.String())
			d.abortAll()
		}
	}
}

func (d *daemon) abortAll() {
	for _, info := range d.turns.Active() {
		if t, ok := d.turns.Turn(info.TurnID); ok {
			t.Abort(api.ReasonShutdown)
			t.Abort(api.ReasonUser) // who has sent another signal wants no grace
		}
	}
}
