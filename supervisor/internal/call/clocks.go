package call

import (
	"fmt"
	"runtime"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

const (
	// meetTime is how long the end of the stream and the exit of the process,
	// or a result, wait for one another: they come on different ways.
	meetTime = time.Second
	// settleTime is how long the pipes are drained after death.
	settleTime = 250 * time.Millisecond
	// progressEvery is the beat of progress events in a long call.
	progressEvery = 5 * time.Second
	// beatsAt is how far apart the times are at which the beats of all calls come, so
	// that those of many calls are put on record together.
	beatsAt = 250 * time.Millisecond
	// boostAfter is how long a kill may take before the tree gets more of the CPU
	// to die with.
	boostAfter = 20 * time.Millisecond
	// lastMoment is how long before its hard limit a result waits no more for its parts:
	// files, network.
	lastMoment = 50 * time.Millisecond
	// lateBy is how late the end of a call's time is noticed only by a host that was
	// stopped, or starved. It takes in what has come meanwhile for hearsTime first: a
	// call that has ended by itself was not stopped.
	lateBy    = 100 * time.Millisecond
	hearsTime = 50 * time.Millisecond
	// minCPUCheck keeps the checks of a call near its CPU limit apart.
	minCPUCheck = 2 * time.Millisecond
)

// clocks are what the owner wakes up for. A zero time is never.
type clocks struct {
	alarm *alarm
	clock budget.Clock
	// startBy is when the tool must have answered, settleAt when the rest of an end
	// must have come, progressAt the next beat, cpuAt when the CPU limit can have been
	// reached.
	startBy, settleAt, progressAt, cpuAt time.Time
	// hearsUntil is when a host that was held up has taken in what had come.
	hearsUntil       time.Time
	overran, boosted bool
}

// marks are the points in time that a result's timing is made of.
type marks struct {
	created, admitted, born, ready, stop, term, kill, empty, done time.Time
}

// bell is a time at which something is to be done in a state.
type bell struct {
	at   time.Time
	ring func(now time.Time)
	// loose ones may ring milliseconds late.
	loose bool
}

// bells are those of the current state.
func (o *owner) bells() []bell {
	switch o.state {
	case stateStarting:
		return []bell{{at: o.budgetAt(), ring: o.checkBudget}, {at: o.cpuAt, ring: o.checkCPU}, {at: o.settleAt, ring: o.endAlone}, {at: o.startBy, ring: o.endLateStart}}
	case stateRunning:
		return []bell{{at: o.budgetAt(), ring: o.checkBudget}, {at: o.progressAt, ring: o.beat, loose: true}, {at: o.cpuAt, ring: o.checkCPU}, {at: o.settleAt, ring: o.endAlone}}
	case stateStopping:
		settleAt := o.settleAt
		if o.streamOver && !o.found.Exited { // it may tidy up for all of its grace
			settleAt = time.Time{}
		}
		return []bell{{at: o.softAt(), ring: o.checkSoft}, {at: settleAt, ring: o.endAlone}, {at: o.marks.stop.Add(o.p.Grace), ring: o.trigger(graceElapsed)}}
	case stateKilling:
		return []bell{{at: o.boostAt(), ring: o.boost}, {at: o.endBy().Add(process.KillTime), ring: o.trigger(survived)}}
	case stateDraining:
		return []bell{{at: o.drainLimit(), ring: o.trigger(drained)}}
	}
	return nil
}

// trigger makes the transition of a bell that does nothing else.
func (o *owner) trigger(t trigger) func(now time.Time) { return func(now time.Time) { o.to(t, now) } }

// nextBell is the earliest of them. Its time is zero without any.
func (o *owner) nextBell() (next bell) {
	for _, b := range o.bells() {
		if !b.at.IsZero() && (next.at.IsZero() || b.at.Before(next.at)) {
			next = b
		}
	}
	return next
}

// checkClocks does what is due, until that leads to another state.
func (o *owner) checkClocks(now time.Time) {
	state := o.state
	for _, b := range o.bells() {
		if o.state == state && !b.at.IsZero() && !now.Before(b.at) {
			b.ring(now)
		}
	}
}

func (c *clocks) budgetAt() time.Time {
	at, _, _ := c.clock.Next()
	if at.Before(c.hearsUntil) && !at.IsZero() {
		return c.hearsUntil
	}
	return at
}

func (c *clocks) softAt() time.Time {
	at, _ := c.clock.Soft()
	return at
}

func (o *owner) boostAt() time.Time {
	if o.boosted || o.marks.kill.IsZero() {
		return time.Time{}
	}
	return o.marks.kill.Add(boostAfter)
}

// endBy is when the call's processes are to be killed at the latest. A host that was held
// up beyond that counts from its kill on: nothing else tells a busy machine from a process
// that cannot be killed, and what the call has left is not read yet.
func (o *owner) endBy() time.Time {
	by := o.graceEnd()
	if o.marks.kill.Sub(by) > lateBy {
		return o.marks.kill
	}
	return by
}

// graceEnd is when the grace of a call is over; what ends by itself has a while for
// it, as long as its deadline allows that.
func (o *owner) graceEnd() time.Time {
	if o.found.Cause != outcome.CauseNone {
		return o.marks.stop.Add(o.p.Grace)
	}
	by := o.marks.stop.Add(max(o.p.Grace, budget.DefaultGrace))
	if at, ok := o.clock.Deadline(); ok && at.Add(o.p.Grace).Before(by) {
		return at.Add(o.p.Grace)
	}
	return by
}

// drainLimit is when reading what is left ends. A reader of the command's
// output that is only slow gets all the time that the call has left.
func (o *owner) drainLimit() time.Time {
	if !o.output.passesThrough() {
		if limit := o.hardLimit(); limit.Before(o.settleAt) {
			return limit
		}
		return o.settleAt
	}
	if o.found.Cause != outcome.CauseNone {
		return o.hardLimit()
	}
	at, ok := o.clock.Deadline()
	if !ok {
		return time.Time{}
	}
	if end := at.Add(o.p.Grace); end.After(o.settleAt) {
		return end
	}
	return o.settleAt // the host was late itself
}

// hardLimit is the time by which the caller has its answer, whatever happens. What a host
// was too late to see end is read for a moment all the same.
func (o *owner) hardLimit() time.Time {
	return later(o.endBy().Add(budget.AnswerMargin), o.marks.empty.Add(budget.AnswerMargin-process.KillTime))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// timeLeft is how long the call may take from now on; 0 has no end.
func (o *owner) timeLeft(now time.Time) time.Duration {
	at, ok := o.clock.Deadline()
	if !ok {
		return 0
	}
	return max(at.Sub(now), 1)
}

// endLateStart is for a tool that is not waited for, however long it may take for
// its work.
func (o *owner) endLateStart(now time.Time) {
	why := fmt.Errorf("the tool has not answered within %s of its start: give it more with timeouts.%s in toolhost.yaml, or see why it is slow", o.startBy.Sub(o.marks.admitted), budget.Registration)
	o.failStart(outcome.Refuse(api.StatusStartFailed, api.ReasonSlow, why), now)
}

func (o *owner) beat(now time.Time) {
	o.progressAt = nextBeat(now)
	o.events.Publish(api.Event{Kind: api.EventProgress, Status: api.StatusRunning, ElapsedMs: o.clock.Elapsed(now).Milliseconds()})
}

// nextBeat is the first time for beats in progressEvery or more.
func nextBeat(now time.Time) time.Time {
	at := now.Add(progressEvery)
	if past := time.Duration(at.UnixNano() % int64(beatsAt)); past > 0 {
		at = at.Add(beatsAt - past)
	}
	return at
}

func (o *owner) checkBudget(now time.Time) {
	for {
		reason, ok := o.clock.Due(now)
		if !ok || o.hears(now) {
			return
		}
		if reason != budget.ReasonSoft {
			o.stop(budgetCauses[reason], api.Reason(reason), now)
			return
		}
		o.checkSoft(now)
	}
}

// hears says that what is due has to wait for what had come before.
func (c *clocks) hears(now time.Time) bool {
	at, _, _ := c.clock.Next()
	if c.hearsUntil.Before(at) && now.Sub(at) > lateBy {
		c.hearsUntil = now.Add(hearsTime)
	}
	return now.Before(c.hearsUntil)
}

var budgetCauses = map[string]outcome.Cause{
	budget.ReasonDeadline: outcome.CauseDeadline, budget.ReasonTotal: outcome.CauseTotal, budget.ReasonIdle: outcome.CauseIdle,
}

// checkSoft reports once that the soft budget is used up.
func (o *owner) checkSoft(now time.Time) {
	o.clock.Overran()
	if !o.overran {
		o.overran = true
		o.events.Publish(api.Event{Kind: api.EventOverran, ElapsedMs: o.clock.Elapsed(now).Milliseconds()})
	}
}

// checkCPU compares the CPU time used with the limit and comes back when it
// could be reached at the earliest, all cores burning.
func (o *owner) checkCPU(now time.Time) {
	o.cpuAt = time.Time{}
	if o.tree == nil {
		return
	}
	used, err := o.tree.CPU()
	if err != nil {
		o.Log.Warn("cannot read the CPU time of a call", "error", err)
	}
	left := o.p.Bounds.CPUTime - used
	if left <= 0 {
		o.stop(outcome.CauseCPU, api.ReasonCPUTime, now)
		return
	}
	o.cpuAt = now.Add(max(left/time.Duration(runtime.NumCPU()), minCPUCheck))
}

// moveTimer keeps the launcher's own timer behind the call's clock. While somebody
// is waited for, it allows for the longest wait.
func (o *owner) moveTimer(now time.Time) {
	left := o.p.Timer(o.clock.Remaining(now))
	if left > 0 && o.tool.questions > 0 {
		left += budget.MaxHumanWait
	}
	o.warnOf("the call may be ended too early", o.tree.SetTimer(left))
}
