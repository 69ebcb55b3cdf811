package supervisor

import (
	"fmt"
	"runtime"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// leastKillTime is how long a kill may take at least; see process.KillTime.
const leastKillTime = budget.AnswerMargin / 2

// nextWake is the earliest time at which checkClocks has something to do in
// the current state; zero if there is none.
func (c *Call) nextWake() time.Time {
	var wake time.Time
	consider := func(at time.Time) {
		if !at.IsZero() && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	switch c.state {
	case stateStarting, stateRunning:
		if at, _, ok := c.clock.Next(); ok {
			consider(at)
		}
		if c.state == stateStarting {
			consider(c.startBy)
		}
		consider(c.progressAt)
		consider(c.cpuAt)
		consider(c.settleAt)
	case stateStopping:
		consider(c.marks.stop.Add(c.p.Grace))
		consider(c.settleAt)
		if at, ok := c.clock.Soft(); ok {
			consider(at)
		}
	case stateKilling:
		consider(c.killLimit())
		if !c.hurried {
			consider(c.hurryTime())
		}
	case stateDraining:
		consider(c.drainLimit())
	}
	return wake
}

// killLimit is when a kill has failed. A host that was itself late with it waits
// a moment all the same: nothing else tells a busy machine from a process that
// cannot be killed.
func (c *Call) killLimit() time.Time {
	limit := c.endBy().Add(process.KillTime)
	if least := c.marks.kill.Add(leastKillTime); least.After(limit) {
		return least
	}
	return limit
}

// endBy is when the grace of a call is over; what ends by itself has a while for
// it, as long as its deadline allows that.
func (c *Call) endBy() time.Time {
	if c.cause != outcome.CauseNone {
		return c.marks.stop.Add(c.p.Grace)
	}
	by := c.marks.stop.Add(max(c.p.Grace, budget.DefaultGrace))
	if at, ok := c.clock.Deadline(); ok && at.Add(c.p.Grace).Before(by) {
		return at.Add(c.p.Grace)
	}
	return by
}

// hurryAfter is how long a kill may take before the tree gets more of the CPU
// to die with.
const hurryAfter = 20 * time.Millisecond

func (c *Call) hurryTime() time.Time {
	if c.marks.kill.IsZero() {
		return time.Time{}
	}
	return c.marks.kill.Add(hurryAfter)
}

// drainLimit is when reading what is left ends. A reader of the command's
// output that is only slow gets all the time that the call has left.
func (c *Call) drainLimit() time.Time {
	if !c.output.passesThrough() {
		if limit := c.hardLimit(); limit.Before(c.settleAt) {
			return limit
		}
		return c.settleAt
	}
	if c.cause != outcome.CauseNone {
		return c.hardLimit()
	}
	if at, ok := c.clock.Deadline(); ok {
		return at.Add(c.p.Grace)
	}
	return time.Time{}
}

// checkClocks does what is due.
func (c *Call) checkClocks(now time.Time) {
	due := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	switch c.state {
	case stateStarting, stateRunning:
		c.checkBudget(now)
		if due(c.progressAt) {
			c.progressAt = now.Add(progressEvery)
			c.events.Publish(api.Event{Kind: api.EventProgress, Status: api.StatusRunning, ElapsedMs: c.clock.Elapsed(now).Milliseconds()})
		}
		if due(c.cpuAt) {
			c.checkCPU(now)
		}
		if due(c.settleAt) {
			c.endAlone(now)
		}
		if c.state == stateStarting && due(c.startBy) {
			c.onStartFailed(c.lateStart(), now)
		}
	case stateStopping:
		if at, ok := c.clock.Soft(); ok && due(at) {
			c.clock.Overran()
			c.overrun(now)
		}
		if due(c.settleAt) {
			c.killNow(ended, now)
		} else if due(c.marks.stop.Add(c.p.Grace)) {
			c.killNow(graceElapsed, now)
		}
	case stateKilling:
		if !c.hurried && due(c.hurryTime()) {
			c.hurry()
		}
		if due(c.killLimit()) {
			c.giveUp(now)
		}
	case stateDraining:
		if due(c.drainLimit()) {
			c.to(drained)
		}
	}
}

// lateStart is why a tool that may take all the time in the world for its work
// is not waited for.
func (c *Call) lateStart() error {
	why := fmt.Errorf("the tool has not answered within %s of its start: give it more with timeouts.%s in toolhost.yaml, or see why it is slow", c.startBy.Sub(c.marks.admitted), budget.Registration)
	return outcome.Refuse(api.StatusStartFailed, api.ReasonSlow, why)
}

func (c *Call) checkBudget(now time.Time) {
	for {
		reason, ok := c.clock.Due(now)
		if !ok {
			return
		}
		if reason == budget.ReasonSoft {
			c.clock.Overran()
			c.overrun(now)
			continue
		}
		c.stop(budgetCauses[reason], api.Reason(reason), now)
		return
	}
}

var budgetCauses = map[string]outcome.Cause{
	budget.ReasonDeadline: outcome.CauseDeadline, budget.ReasonTotal: outcome.CauseTotal, budget.ReasonIdle: outcome.CauseIdle,
}

func (c *Call) overrun(now time.Time) {
	if c.overran {
		return
	}
	c.overran = true
	c.events.Publish(api.Event{Kind: api.EventOverran, ElapsedMs: c.clock.Elapsed(now).Milliseconds()})
}

// minCPUCheck keeps the checks of a call near its CPU limit apart.
const minCPUCheck = 2 * time.Millisecond

// checkCPU compares the CPU time used with the limit and comes back when it
// could be reached at the earliest, all cores burning.
func (c *Call) checkCPU(now time.Time) {
	c.cpuAt = time.Time{}
	if c.tree == nil {
		return
	}
	used, err := c.tree.CPU()
	if err != nil {
		c.log().Warn("cannot read the CPU time of a call", "error", err)
	}
	left := c.p.Bounds.CPUTime - used
	if left <= 0 {
		c.stop(outcome.CauseCPU, api.ReasonCPUTime, now)
		return
	}
	c.cpuAt = now.Add(max(left/time.Duration(runtime.NumCPU()), minCPUCheck))
}

// tryDrained ends the call when there is nothing left to read.
func (c *Call) tryDrained() {
	streamOver := c.streamOver || c.conn == nil
	if c.state == stateDraining && streamOver && c.outputOver {
		c.to(drained)
	}
}
