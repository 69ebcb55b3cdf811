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
	for tidied := never; ; {
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
			tidied = d.tidy(tidied)
			d.watchTokens()
			_ = d.turns.Approvals().Flush()
			d.trail.flush()
		}
	}
}

// tidy returns memory once nothing runs; before is how many calls had ended when it last
// did.
func (d *daemon) tidy(before uint64) (ended uint64) {
	ended = d.record.ended.Load()
	if ended == before || d.host.Host().Running > 0 {
		return before
	}
	shrink()
	return ended
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
