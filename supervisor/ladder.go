package supervisor

import (
	"context"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// stop begins the kill ladder. The first cause stays.
func (c *Call) stop(why cause, reason api.Reason, now time.Time) {
	if _, ok := next(c.state, stopRequested); !ok {
		return
	}
	c.cause, c.reason, c.silence = why, reason, c.clock.Silence()
	c.marks.stop = now
	if why.status() == api.StatusTimeout {
		c.events.publish(api.Event{Kind: api.EventTimeout, TimeoutMs: budget.Milliseconds(c.resolution.Timeout), ElapsedMs: c.clock.Elapsed(now).Milliseconds()})
	}
	if c.grace == 0 || why == causeOOM { // the kernel has begun to kill already
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
	if c.instance == nil {
		return false
	}
	c.instance.doom(c)
	c.marks.term = time.Now()
	pids, err := c.instance.group.Signal([]syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, c.instance.isLauncher)
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
	if c.cause == causeNone && c.final == nil && c.instance != nil && c.instance.doomedByOther(c) {
		c.cause, c.reason = causeCollateral, api.ReasonCollateral // its death came before the word of it
	}
	ladder := c.cause != causeNone
	if c.marks.stop.IsZero() {
		c.marks.stop = now
	}
	c.cancelStart()
	if c.instance != nil {
		c.instance.doom(c)
		c.countProcesses(ladder, t == ended || t == startFailed)
		c.marks.kill = time.Now()
		c.warnOf("cannot kill all of the call at once", c.instance.kill())
	}
	c.s.tasks.run("await the end of processes", c.awaitEmpty)
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
	pids, err := c.instance.group.Processes()
	if err != nil {
		c.log().Warn("cannot list the processes of a call", "error", err)
	}
	left := 0
	for _, pid := range pids {
		if !c.instance.isLauncher(pid) {
			c.kill.seen[pid] = struct{}{}
			left++
		}
	}
	own := 1
	if c.exited {
		own = 0
	}
	if ladder && (!byItself || left > own) {
		c.kill.signals = append(c.kill.signals, "SIGKILL")
	}
}

// awaitEmpty waits until the starter has ended and no process is left.
func (c *Call) awaitEmpty() {
	<-c.started
	if i := c.spawned; i != nil {
		i.doom(c)
		_ = i.kill() // also what was spawned after the owner's kill
		for _, over := range []<-chan struct{}{i.process.Gone(), i.exitTold} {
			select {
			case <-over:
			case <-c.over:
				return
			}
		}
		if err := i.group.WaitEmpty(c.lifetime); err != nil {
			return
		}
	}
	c.send(input{kind: inEmptied})
}

// hurry helps a tree to die on a busy machine.
func (c *Call) hurry() {
	c.hurried = true
	if c.instance == nil {
		return
	}
	if err := c.instance.group.Hurry(); err != nil {
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
	if c.instance == nil {
		c.giveUpStart()
		return
	}
	c.instance.group.Calm()
	pids, err := c.instance.group.Processes()
	c.kill.survivors = max(len(pids), 1)
	if err == nil && len(pids) == 0 && c.instance.process.HasEnded() {
		c.kill.survivors = 0 // only the starter is late
	}
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
