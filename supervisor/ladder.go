package supervisor

import (
	"context"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/budget"
)

// stop begins the kill ladder. The first cause stays.
func (c *Call) stop(why cause, reason string, now time.Time) {
	if _, ok := next(c.state, stopRequested); !ok {
		return
	}
	c.cause, c.reason = why, reason
	c.marks.stop = now
	if why.status() == StatusTimeout {
		c.events.publish(Event{Kind: EventTimeout, TimeoutMs: budget.Milliseconds(c.resolution.Timeout), ElapsedMs: c.clock.Elapsed(now).Milliseconds()})
	}
	if c.grace == 0 || why == causeOOM { // the kernel has begun to kill already
		c.killNow(killRequested, now)
		return
	}
	c.to(stopRequested)
	c.signal()
	c.requestCancel(reason)
}

// signal sends SIGTERM, and SIGCONT so that stopped processes see it, to every
// process of the call but the launcher.
func (c *Call) signal() {
	if c.tree == nil {
		return
	}
	c.marks.term = time.Now()
	pids, err := c.tree.group.Signal([]syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, c.tree.isLauncher)
	if err != nil {
		c.s.config.Logger.Warn("cannot signal every process of a call", "call", c.id, "error", err)
	}
	for _, pid := range pids {
		c.kill.seen[pid] = struct{}{}
	}
	if len(pids) > 0 {
		c.kill.signals = append(c.kill.signals, "SIGTERM")
	}
}

// cancelTimeout bounds the wait for a tool's answer to Cancel.
const cancelTimeout = time.Second

func (c *Call) requestCancel(reason string) {
	if c.conn == nil {
		return
	}
	conn, id := c.conn, c.id
	c.tree.helpers.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
		defer cancel()
		_ = conn.Cancel(ctx, id, reason)
	})
}

// killNow takes the whole group down, after the ladder or as the clean-up of a
// call that has ended, and has the owner told when nothing is left.
func (c *Call) killNow(t trigger, now time.Time) {
	ladder := c.cause != causeNone
	if !c.to(t) {
		return
	}
	if c.marks.stop.IsZero() {
		c.marks.stop = now
	}
	c.cancelStart()
	if c.tree != nil {
		c.countProcesses(ladder, t == ended || t == startFailed)
		c.marks.kill = time.Now()
		c.tree.kill()
	}
	go c.awaitEmpty()
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
	pids, err := c.tree.group.Processes()
	if err != nil {
		c.s.config.Logger.Warn("cannot list the processes of a call", "call", c.id, "error", err)
	}
	left := 0
	for _, pid := range pids {
		if !c.tree.isLauncher(pid) {
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
	if t := c.spawned; t != nil {
		t.kill() // also what was spawned after the owner's kill
		for _, over := range []<-chan struct{}{t.process.Gone(), t.exitTold} {
			select {
			case <-over:
			case <-c.done:
				return
			}
		}
		if err := t.group.WaitEmpty(t.lifetime); err != nil {
			return
		}
	}
	c.send(input{kind: inEmptied})
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
	c.kill.survivors = 1
	if c.tree != nil {
		pids, err := c.tree.group.Processes()
		c.kill.survivors = max(len(pids), 1)
		if err == nil && len(pids) == 0 && c.tree.isGone() {
			c.kill.survivors = 0 // only the starter is late
		}
	}
}

// hardLimit is the time by which the caller has its answer, whatever happens.
func (c *Call) hardLimit() time.Time {
	return c.marks.stop.Add(c.grace + budget.AnswerMargin)
}
