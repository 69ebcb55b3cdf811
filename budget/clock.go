package budget

import "time"

// Reasons that [Clock.Next] gives. All but ReasonSoft end the call.
const (
	ReasonSoft     = "soft"     // the soft budget has passed: tell, and let it run
	ReasonDeadline = "deadline" // the timeout
	ReasonTotal    = "total"    // Stream.Total
	ReasonIdle     = "idle"     // Stream.Initial or Stream.Gap
)

// ClockSpec says what a [Clock] watches. Timeout and Soft are those in force, as in
// a [Resolution]; a Timeout of 0 or less is due at once, for a call must be bounded
// on purpose to be unbounded. Soft goes through [Soft], so 0 means the default.
type ClockSpec struct {
	Timeout, Soft time.Duration
	Stream        Stream
}

// Clock holds all of one call's deadlines. It runs from admission, start-up
// included, and stands still while the call waits for a human. It doesn't tick:
// its owner tells it what happened and when, and asks what is due next.
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

// NewClock gives a Clock that has been running since admitted.
func NewClock(admitted time.Time, spec ClockSpec) Clock {
	spec.Timeout = max(spec.Timeout, 0)
	spec.Soft = Soft(spec.Soft, spec.Timeout)
	return Clock{spec: spec, admitted: admitted}
}

// Started says that the tool has been asked to work: the stream policy begins. Only
// the first time counts.
func (c *Clock) Started(now time.Time) {
	if c.isStarted {
		return
	}
	c.isStarted = true
	c.started = c.Elapsed(now)
	c.lastSign = c.started
}

// Message says that the tool has sent something of its own accord other than a
// heartbeat: content, progress, a log line.
func (c *Clock) Message(now time.Time) {
	c.Heartbeat(now)
	c.messages = true
}

// Heartbeat says that the tool has sent a sign of life and nothing else. It resets
// the gap, never the initial time, the total or the timeout.
func (c *Clock) Heartbeat(now time.Time) {
	c.Started(now)
	c.lastSign = max(c.lastSign, c.Elapsed(now))
}

// Overran says that the owner has seen to the soft budget; it isn't due any more.
func (c *Clock) Overran() { c.overran = true }

// Paused says that the call begins to wait for a human. Waits may overlap: the
// clock stands still until as many have ended.
func (c *Clock) Paused(now time.Time) {
	if c.waits == 0 {
		c.frozen = c.Elapsed(now)
	}
	c.waits++
}

// Resumed says that a human wait is over. Without one it does nothing.
func (c *Clock) Resumed(now time.Time) {
	if c.waits == 0 {
		return
	}
	if c.waits == 1 {
		c.waited = c.HumanWait(now)
	}
	c.waits--
}

// Elapsed is the running time: since admission, less human waits.
func (c *Clock) Elapsed(now time.Time) time.Duration {
	if c.waits > 0 {
		return c.frozen
	}
	return max(c.age(now)-c.waited, 0)
}

// HumanWait is the time that the call has waited for humans; overlapping waits
// count once.
func (c *Clock) HumanWait(now time.Time) time.Duration {
	if c.waits == 0 {
		return c.waited
	}
	return max(c.age(now)-c.frozen, c.waited)
}

// age is the real time since admission. The lower bound keeps sums from overflowing.
func (c *Clock) age(now time.Time) time.Duration { return max(now.Sub(c.admitted), 0) }

// Remaining is the running time left until the timeout or the stream's total, at
// least 0, or [Infinite].
func (c *Clock) Remaining(now time.Time) time.Duration {
	end := c.endAfter()
	if end == Infinite {
		return Infinite
	}
	return max(end-c.Elapsed(now), 0)
}

// Silence is how long the tool may be silent at present, or [Infinite].
func (c *Clock) Silence() time.Duration { return c.spec.Stream.silence(c.messages) }

// Deadline is when the call must end whatever it streams, provided that no human
// wait follows. ok is false if it need not end, or during a human wait.
func (c *Clock) Deadline() (deadline time.Time, ok bool) {
	return c.at(c.endAfter())
}

// Next is the earliest deadline and its reason, past ones included until their
// owner has acted. Of equal ones the soft budget comes first and idleness last. ok
// is false if nothing is due ever, or during a human wait.
func (c *Clock) Next() (deadline time.Time, reason string, ok bool) {
	after, reason := c.nextAfter()
	deadline, ok = c.at(after)
	if !ok {
		return time.Time{}, "", false
	}
	return deadline, reason, true
}

// Soft is when the soft budget passes; ok is false if its owner has seen to that,
// without a soft budget, and during a human wait.
func (c *Clock) Soft() (at time.Time, ok bool) {
	if c.overran {
		return time.Time{}, false
	}
	return c.at(c.spec.Soft)
}

// Due is the reason of [Clock.Next] if its deadline has come. After ReasonSoft,
// call [Clock.Overran] and ask again.
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

// at turns running time into a point in time, if the clock runs on to it.
func (c *Clock) at(after time.Duration) (time.Time, bool) {
	if c.waits > 0 || after == Infinite {
		return time.Time{}, false
	}
	return c.admitted.Add(add(after, c.waited)), true
}
