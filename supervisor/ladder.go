package supervisor

import (
	"context"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// stop begins the kill ladder. The first cause stays.
func (c *Call) stop(why outcome.Cause, reason api.Reason, now time.Time) {
	if _, ok := next(c.state, stopRequested); !ok {
		return
	}
	c.cause, c.reason, c.silence = why, reason, c.clock.Silence()
	c.marks.stop = now
	c.p.Service.Close()
	if why.Status() == api.StatusTimeout {
		c.events.Publish(api.Event{Kind: api.EventTimeout, TimeoutMs: budget.Milliseconds(c.p.Timeout.Timeout), ElapsedMs: c.clock.Elapsed(now).Milliseconds()})
	}
	if c.p.Grace == 0 || why == outcome.CauseOOM { // the kernel has begun to kill already
		c.killNow(killRequested, now)
		return
	}
	starting := c.state == stateStarting
	c.to(stopRequested)
	if !c.signal() && starting {
		c.killNow(killRequested, now) // there is nobody yet to be given time
		return
	}
	c.requestCancel(reason)
}

// signal sends SIGTERM, and SIGCONT so that stopped processes see it, to every
// process of the call but the launcher. It is false if there is none.
func (c *Call) signal() bool {
	if c.tree == nil {
		return false
	}
	c.marks.term = time.Now()
	pids, err := c.tree.Terminate()
	if err != nil {
		c.log().Warn("cannot signal every process of a call", "error", err)
	}
	for _, pid := range pids {
		c.kill.seen[pid] = struct{}{}
	}
	if len(pids) > 0 {
		c.kill.signals = append(c.kill.signals, "SIGTERM")
	}
	return len(pids) > 0 || err != nil
}

// cancelTimeout bounds the wait for a tool's answer to Cancel.
const cancelTimeout = time.Second

func (c *Call) requestCancel(reason api.Reason) {
	if c.conn == nil {
		return
	}
	conn, id := c.conn, c.id
	c.helpers.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
		defer cancel()
		_ = conn.Cancel(ctx, id, string(reason))
	})
}

// killNow takes the whole group down, after the ladder or as the clean-up of a
// call that has ended, and has the owner told when nothing is left.
func (c *Call) killNow(t trigger, now time.Time) {
	if !c.to(t) {
		return
	}
	if c.cause == outcome.CauseNone && c.final == nil && c.tree != nil && c.tree.Doomed() {
		c.cause, c.reason = outcome.CauseCollateral, api.ReasonCollateral // its death came before the word of it
	}
	c.p.Service.Close()
	ladder := c.cause != outcome.CauseNone
	if c.marks.stop.IsZero() {
		c.marks.stop = now
	}
	c.cancelStart()
	if c.tree != nil {
		c.countProcesses(ladder, t == ended || t == startFailed)
		c.marks.kill = time.Now()
		c.warnOf("cannot kill all of the call at once", c.tree.Kill())
	}
	c.s.tasks.Run("await the end of processes", c.awaitEmpty)
}

// warnOf has the result say what has failed, if something has. It is the owner's.
func (c *Call) warnOf(what string, err error) {
	if err != nil {
		c.warn(what + ": " + err.Error())
	}
}

// cancelStart ends a start-up that still goes on; a stream goes on until the
// tool's death ends it, so that nothing sent is lost.
func (c *Call) cancelStart() {
	if c.conn == nil {
		c.cancelWork()
	}
}

// countProcesses notes who is there to be killed. On the ladder that takes
// SIGKILL unless the call has ended by itself and left at most its own process.
func (c *Call) countProcesses(ladder, byItself bool) {
	pids, err := c.tree.Processes()
	if err != nil {
		c.log().Warn("cannot list the processes of a call", "error", err)
	}
	for _, pid := range pids {
		c.kill.seen[pid] = struct{}{}
	}
	own := 1
	if c.exited {
		own = 0
	}
	if ladder && (!byItself || len(pids) > own) {
		c.kill.signals = append(c.kill.signals, "SIGKILL")
	}
}

// awaitEmpty waits until the starter has ended and no process is left.
func (c *Call) awaitEmpty() {
	<-c.started
	if c.spawned != nil {
		_ = c.spawned.Kill() // also what was spawned after the owner's kill
		if c.spawned.Ended(c.lifetime) != nil {
			return
		}
	}
	c.send(input{kind: inEmptied})
}

// hurry helps a tree to die on a busy machine.
func (c *Call) hurry() {
	c.hurried = true
	if c.tree == nil {
		return
	}
	if err := c.tree.Hurry(); err != nil {
		c.log().Warn("cannot give a dying call more CPU time", "error", err)
	}
}

func (c *Call) onEmptied(now time.Time) {
	if !c.to(emptied) {
		return
	}
	c.marks.empty = now
	c.settleAt = now.Add(settleTime)
	c.tryDrained()
}

// giveUp is for trees that SIGKILL does not end in time (state D): the caller
// gets its answer, and the slot is not used again.
func (c *Call) giveUp(now time.Time) {
	if !c.to(survived) {
		return
	}
	c.marks.empty = now
	c.settleAt = now
	if c.tree == nil {
		c.giveUpStart()
		return
	}
	c.kill.survivors = c.tree.GiveUp()
}

// giveUpStart is for a starter that is late to give up: no process is known, so
// none survives. The slot is kept until it is certain that there is none.
func (c *Call) giveUpStart() {
	c.uncertain = c.uncertain || c.launching.Load()
	c.warnings = append(c.warnings, "the start was not given up in time: no process of it is known, and its slot stays taken until that is certain")
}

// hardLimit is the time by which the caller has its answer, whatever happens.
func (c *Call) hardLimit() time.Time {
	return c.endBy().Add(budget.AnswerMargin)
}
