package daemon

import (
	"fmt"
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
	last := quiet{ended: never}
	var gone error // the journal
	for {
		select {
		case s := <-d.options.Signals:
			d.logger.Info("stopping", "signal", s.String())
			return nil
		case <-d.options.Reloads:
			if len(d.options.Signals) == 0 { // which come first
				d.reload()
			}
		case err := <-d.broken:
			d.logger.Error("stopping", "error", err)
			return err
		case <-watchdog:
			_ = d.host.Host() // a daemon that hangs must not get this far
			d.manager.alive()
		case <-tick.C:
			d.manager.status(d.status())
			last = d.tidy(last)
			gone = d.watchJournal(gone)
			d.watchTokens()
			_ = d.turns.Approvals().Flush()
			d.trail.further(false)
			d.trail.flush()
		}
	}
}

// quiet is what the daemon was like at a tick.
type quiet struct {
	ended    uint64 // calls
	resident int64  // bytes in memory when that was last returned
}

// returnedAfter is how many more bytes are in memory when it is returned again: half of that is
// used at the next ticks.
const returnedAfter = 6 << 20

// tidy returns memory once nothing has run for a tick, for what comes behind a call's end
// needs some as well; also what work of the daemon's own has taken since.
func (d *daemon) tidy(last quiet) quiet {
	now := quiet{ended: d.record.ended.Load(), resident: last.resident}
	if now.ended == last.ended && d.host.Host().Running == 0 && inMemory() > last.resident+returnedAfter {
		shrink()
		now.resident = inMemory()
	}
	return now
}

func (d *daemon) status() string {
	running, waiting := d.underWay()
	status := fmt.Sprintf("%d turns, %d calls running, %d waiting", len(d.turns.Active()), running, waiting)
	if n := d.host.Host().Prestarted.Processes; n > 0 {
		status += fmt.Sprintf("; %d processes wait for calls", n)
	}
	return status
}
