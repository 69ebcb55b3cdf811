package budget

import "time"

// Reasons returned by [Clock.Next]. All but ReasonSoft end the call.
const (
	ReasonSoft     = "soft"     // the soft budget: report it, and let the call run
	ReasonDeadline = "deadline" // the timeout
	ReasonTotal    = "total"    // Stream.Total
	ReasonIdle     = "idle"     // Stream.Initial or Stream.Gap
)

// ClockSpec configures a [Clock]. Timeout and Soft are those in force, as in a
// [Resolution]. A Timeout of 0 or less is due at once, so that a call is unbounded only
// by an explicit [Infinite]. Soft is passed to the function [Soft]: 0 means the default.
type ClockSpec struct {
	Timeout, Soft time.Duration
	Stream        Stream
}

// Clock holds the deadlines of one call. It runs from admission, including the
// start, and stops while the call waits for a human. It does not tick: its owner
// reports what happened and when, and asks what is due next.
//
// A time before admission counts as admission, and an older message never brings a
// deadline forward. A Clock is a value, a copy is independent of it, and it is not
// safe for concurrent use.
type Clock struct {
	spec     ClockSpec
	admitted time.Time

	// All below count running time: since admission, less human waits.
	started  time.Duration
	lastSign time.Duration // start, message or heartbeat
	frozen   time.Duration // where the clock stands while waits > 0

	waits  int           // human waits going on
	waited time.Duration // real time of those that are over

	isStarted, messages, overran bool
}

// NewClock returns a Clock that has been running since admitted.
func NewClock(admitted time.Time, spec ClockSpec) Clock {
	spec.Timeout = max(spec.Timeout, 0)
	spec.Soft = Soft(spec.Soft, spec.Timeout)
	return Clock{spec: spec, admitted: admitted}
}

// Started reports that the tool was told to work: the stream policy begins. Later
// calls have no effect.
func (c *Clock) Started(now time.Time) {
	if c.isStarted {
		return
	}
	c.isStarted = true
	c.started = c.Elapsed(now)
	c.lastSign = c.started
}

// Message reports that the tool has sent content, progress or a log line, anything
// but a heartbeat.
func (c *Clock) Message(now time.Time) {
	c.Heartbeat(now)
	c.messages = true
}

// Heartbeat reports a heartbeat of the tool. It resets the gap, but not the initial
// time, the total or the timeout.
func (c *Clock) Heartbeat(now time.Time) {
	c.Started(now)
	c.lastSign = max(c.lastSign, c.Elapsed(now))
}

// Overran reports that the owner has handled the soft budget, which is then no longer due.
func (c *Clock) Overran() { c.overran = true }

// Paused reports that the call begins to wait for a human. Waits may overlap: the
// clock stops until all of them have ended.
func (c *Clock) Paused(now time.Time) {
	if c.waits == 0 {
		c.frozen = c.Elapsed(now)
	}
	c.waits++
}

// Resumed reports that a human wait is over. Without one it does nothing.
func (c *Clock) Resumed(now time.Time) {
	if c.waits == 0 {
		return
	}
	if c.waits == 1 {
		c.waited = c.HumanWait(now)
	}
	c.waits--
}

// Elapsed returns the running time: since admission, less human waits.
func (c *Clock) Elapsed(now time.Time) time.Duration {
	if c.waits > 0 {
		return c.frozen
	}
	return max(c.age(now)-c.waited, 0)
}

// HumanWait returns the time that the call has waited for humans; overlapping waits
// count once.
func (c *Clock) HumanWait(now time.Time) time.Duration {
	if c.waits == 0 {
		return c.waited
	}
	return max(c.age(now)-c.frozen, c.waited)
}

// age is the real time since admission. The lower bound keeps sums from overflowing.
func (c *Clock) age(now time.Time) time.Duration { return max(now.Sub(c.admitted), 0) }

// Remaining returns the running time left until the timeout or the stream's total,
// at least 0, or [Infinite].
func (c *Clock) Remaining(now time.Time) time.Duration {
	end := c.endAfter()
	if end == Infinite {
		return Infinite
	}
	return max(end-c.Elapsed(now), 0)
}

// Silence returns how long the tool may now be silent, or [Infinite].
func (c *Clock) Silence() time.Duration { return c.spec.Stream.silence(c.messages) }

// Deadline returns when the call must end whatever it streams, unless human waits
// follow. ok is false if there is no deadline, or during a human wait.
func (c *Clock) Deadline() (deadline time.Time, ok bool) {
	return c.at(c.endAfter())
}

// Next returns the earliest deadline and its reason, including past ones that the
// owner has not handled. Of equal ones the soft budget comes first and idleness
// last. ok is false if nothing will be due, or during a human wait.
func (c *Clock) Next() (deadline time.Time, reason string, ok bool) {
	after, reason := c.nextAfter()
	deadline, ok = c.at(after)
	if !ok {
		return time.Time{}, "", false
	}
	return deadline, reason, true
}

// Soft returns when the soft budget passes. ok is false without a soft budget, once
// the owner has handled it (see [Clock.Overran]), and during a human wait.
func (c *Clock) Soft() (at time.Time, ok bool) {
	if c.overran {
		return time.Time{}, false
	}
	return c.at(c.spec.Soft)
}

// Due returns the reason of [Clock.Next] if its deadline has passed. After
// ReasonSoft, call [Clock.Overran] and Due again.
func (c *Clock) Due(now time.Time) (reason string, ok bool) {
	after, reason := c.nextAfter()
	if c.waits > 0 || after == Infinite || c.Elapsed(now) < after {
		return "", false
	}
	return reason, true
}

func (c *Clock) nextAfter() (after time.Duration, reason string) {
	after = Infinite
	consider := func(d time.Duration, why string) {
		if d < after {
			after, reason = d, why
		}
	}
	if !c.overran {
		consider(c.spec.Soft, ReasonSoft)
	}
	consider(c.spec.Timeout, ReasonDeadline)
	if c.isStarted {
		consider(c.spec.Stream.totalAfter(c.started), ReasonTotal)
		consider(c.spec.Stream.idleAfter(c.started, c.lastSign, c.messages), ReasonIdle)
	}
	return after, reason
}

func (c *Clock) endAfter() time.Duration {
	if !c.isStarted {
		return c.spec.Timeout
	}
	return min(c.spec.Timeout, c.spec.Stream.totalAfter(c.started))
}

// at converts running time to a point in time, if the clock does not stop before it.
func (c *Clock) at(after time.Duration) (time.Time, bool) {
	if c.waits > 0 || after == Infinite {
		return time.Time{}, false
	}
	return c.admitted.Add(add(after, c.waited)), true
}
