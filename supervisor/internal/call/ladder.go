package call

import (
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// ladder is what was done to end a call's processes.
type ladder struct {
	signals []string
	seen    map[int]struct{} // processes met on it
	silence time.Duration    // that was allowed when it began
}

func newLadder() ladder { return ladder{seen: map[int]struct{}{}} }

func (l *ladder) meet(pids []int) {
	for _, pid := range pids {
		l.seen[pid] = struct{}{}
	}
}

// fill shows it in a result. A command's adapter, which is alive as long as the command, is
// not one of the tool's processes.
func (l *ladder) fill(k *api.Kill, command bool) {
	k.Signals = append(k.Signals, l.signals...)
	k.Reaped = len(l.seen) - k.Survivors
	if command {
		k.Reaped--
	}
	k.Reaped = max(k.Reaped, 0)
	for _, signal := range k.Signals {
		switch signal {
		case "SIGTERM":
			k.Stage = "term"
		case "SIGKILL":
			k.Stage = "kill"
		}
	}
}

// stop begins the kill ladder. The first cause stays.
func (o *owner) stop(why outcome.Cause, reason api.Reason, now time.Time) {
	if _, ok := next(o.state, stopRequested); !ok {
		return
	}
	o.found.Cause, o.found.Reason, o.ladder.silence = why, reason, o.clock.Silence()
	o.marks.stop = now
	o.p.Service.Close()
	if why.Status() == api.StatusTimeout {
		o.events.Publish(api.Event{Kind: api.EventTimeout, TimeoutMs: budget.Milliseconds(o.timeout().Timeout), ElapsedMs: o.clock.Elapsed(now).Milliseconds()})
	}
	if o.p.Grace == 0 || why == outcome.CauseOOM { // the kernel has begun to kill already
		o.to(killRequested, now)
		return
	}
	o.to(stopRequested, now)
}

// signal sends SIGTERM, and SIGCONT so that stopped processes see it, to every
// process of the call but the launcher. It is false if the call has no other.
func (o *owner) signal() bool {
	if o.tree == nil {
		return false
	}
	began := time.Now()
	pids, err := o.tree.Terminate()
	if err != nil {
		o.Log.Warn("cannot signal every process of a call", "error", err)
	}
	o.ladder.meet(pids)
	if len(pids) > 0 {
		o.marks.term = began
		o.ladder.signals = append(o.ladder.signals, "SIGTERM")
	}
	return len(pids) > 0 || err != nil
}

// killTree sends SIGKILL to all of the call's processes. byItself says that the call
// has ended without it.
func (o *owner) killTree(byItself bool) {
	o.countProcesses(byItself)
	o.marks.kill = time.Now()
	o.warnOf("cannot kill all of the call's processes at once", o.tree.Kill())
	if o.Ending != nil {
		o.Ending(o.hardLimit().Add(-lastMoment), o.found.Cause == outcome.CauseNone)
	}
}

// countProcesses notes which processes are there to be killed. On the ladder that
// takes SIGKILL unless the call has ended by itself and left at most its own process.
// A launcher that ended them first, by its own timer where the host was late, has
// made the kernel send it.
func (o *owner) countProcesses(byItself bool) {
	pids, err := o.tree.Processes()
	if err != nil {
		o.Log.Warn("cannot list the processes of a call", "error", err)
	}
	o.ladder.meet(pids)
	own := 1
	if o.found.Exited {
		own = 0
	}
	if o.found.Cause != outcome.CauseNone && (!byItself || len(pids) > own || o.tree.LauncherLost()) {
		o.ladder.signals = append(o.ladder.signals, "SIGKILL")
	}
}

// awaitEmpty waits until the starter has ended and no process is left. late says that the
// starter may have brought some after the owner's kill.
func (o *owner) awaitEmpty(late bool) {
	<-o.started
	if o.spawned != nil {
		if late {
			_ = o.spawned.Kill()
		}
		if o.spawned.Ended(o.lifetime) != nil {
			return
		}
	}
	o.send(groupEmptied{})
}

// boost helps a tree to die on a busy machine.
func (o *owner) boost(time.Time) {
	o.boosted = true
	if o.tree == nil {
		return
	}
	if err := o.tree.Boost(); err != nil {
		o.Log.Warn("cannot give a dying call more CPU time", "error", err)
	}
}

// giveUp is for trees that SIGKILL does not end in time (state D): the caller
// gets its answer, and the slot is not used again. A starter that is late to give up
// has no process that is known, so none survives; the slot is kept until it is
// certain that it has no process.
func (o *owner) giveUp() {
	if o.tree != nil {
		o.found.Survivors = o.tree.GiveUp()
		return
	}
	o.uncertain = o.uncertain || o.launching.Load()
	o.warn("the start did not end in time: no process of it is known, and its slot stays taken until that is certain")
}
