package daemon

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// never is a count of calls that is never reached.
const never = ^uint64(0)

// tickEvery is the time between the daemon's housekeeping.
const tickEvery = 5 * time.Second

// run handles signals until one of them stops the daemon.
func (d *daemon) run() error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	watchdog, stop := d.manager.watchdog()
	defer stop()
	d.manager.ready(d.status())
	tidied, seen := never, never
	for {
		select {
		case s := <-d.options.Signals:
			if s != syscall.SIGHUP {
				d.logger.Info("stopping", "signal", signalName(s))
				return nil
			}
			d.reload()
		case err := <-d.broken:
			d.logger.Error("stopping", "error", err)
			return err
		case <-watchdog:
			_ = d.host.Host() // a daemon that hangs must not get this far
			d.manager.alive()
		case <-tick.C:
			d.manager.status(d.status())
			tidied, seen = d.tidy(tidied, seen)
			d.watchTokens()
			_ = d.turns.Approvals().Flush()
			d.trail.flush()
		}
	}
}

// tidy returns memory once nothing has run for a tick, for what comes behind a call's end
// needs some as well. before is how many calls had ended when it last did, and seen at the
// last tick.
func (d *daemon) tidy(before, seen uint64) (tidied, ended uint64) {
	ended = d.record.ended.Load()
	if ended == before || ended != seen || d.host.Host().Running > 0 {
		return before, ended
	}
	shrink()
	return ended, ended
}

func (d *daemon) status() string {
	h := d.host.Host()
	status := fmt.Sprintf("%d turns, %d calls running, %d waiting", len(d.turns.Active()), h.Running, h.Waiting)
	if n := h.Prestarted.Processes; n > 0 {
		status += fmt.Sprintf("; %d processes wait for calls", n)
	}
	return status
}

func signalName(s os.Signal) string { return s.String() }
