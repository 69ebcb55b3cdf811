package budget

import (
	"cmp"
	"fmt"
	"time"
)

// Defaults of a [TurnSpec].
const (
	DefaultMaxCalls       = 50
	DefaultReserve        = 10 * time.Second
	DefaultStreamDuration = 60 * time.Second
)

// NoReserve, as a TurnSpec's Reserve, means no reserve.
const NoReserve time.Duration = -1

// MinCall is the least time with which a call is started.
const MinCall = time.Second

// TurnSpec bounds one turn. Zero fields mean the defaults: 50 calls, no limit on
// tool time, no deadline, a reserve of 10 s, and 60 s for the model to stream.
type TurnSpec struct {
	// MaxCalls is how many calls the turn may make.
	MaxCalls int
	// ToolTime bounds the time during which at least one call runs.
	ToolTime time.Duration
	// Deadline bounds the whole turn, less the time in which it waits for a
	// human. Reserve is the part of it that is kept for the model's last answer;
	// NoReserve means none.
	Deadline time.Duration
	Reserve  time.Duration
	// StreamDuration bounds the time that the model streams, in all round trips
	// together, without the time of tools and humans; 0 means 60 s.
	StreamDuration time.Duration
}

// Check returns an error for negative bounds. They may be the rest of a budget that is
// overdrawn, which must not turn into no bound.
func (s TurnSpec) Check() error {
	if s.MaxCalls < 0 {
		return fmt.Errorf("MaxCalls is %d: must be positive, or 0 for %d", s.MaxCalls, DefaultMaxCalls)
	}
	if s.Reserve < 0 && s.Reserve != NoReserve {
		return fmt.Errorf("Reserve is %s: must be positive, NoReserve, or 0 for %s", Format(s.Reserve), Format(DefaultReserve))
	}
	for _, bound := range []struct {
		name string
		time time.Duration
		zero string
	}{{"ToolTime", s.ToolTime, "no limit"}, {"Deadline", s.Deadline, "none"}, {"StreamDuration", s.StreamDuration, Format(DefaultStreamDuration)}} {
		if bound.time < 0 {
			return fmt.Errorf("%s is %s: must be positive, or 0 for %s", bound.name, bound.time, bound.zero)
		}
	}
	return nil
}

// Turn tracks a turn's budget by three independent clocks. Tool time is the union of
// the intervals in which calls run. The deadline's clock stops while the turn waits
// for a human. Streaming time is the time of the model's round trips without that of
// tools and humans.
//
// A Turn does not tick: its owner reports what happened and when. It is a value, and
// not safe for concurrent use.
type Turn struct {
	spec  TurnSpec
	began time.Time
	calls int

	tools span // in which calls run
	human span // in which somebody is waited for

	stream    span // in which the model streams
	streaming bool // the host says so
	busy      bool // calls are under way, running or not
}

// span measures the union of intervals.
type span struct {
	open  int
	since time.Time
	sum   time.Duration
}

func (s *span) enter(now time.Time) {
	if s.open == 0 {
		s.since = now
	}
	s.open++
}

func (s *span) leave(now time.Time) {
	if s.open == 0 {
		return
	}
	s.open--
	if s.open == 0 {
		s.sum += max(now.Sub(s.since), 0)
	}
}

func (s span) at(now time.Time) time.Duration {
	if s.open > 0 {
		return s.sum + max(now.Sub(s.since), 0)
	}
	return s.sum
}

// NewTurn returns the budget of a turn that begins now.
func NewTurn(now time.Time, spec TurnSpec) Turn {
	spec.MaxCalls = orDefault(spec.MaxCalls, DefaultMaxCalls)
	spec.Reserve = max(cmp.Or(spec.Reserve, DefaultReserve), 0)
	spec.StreamDuration = orDefault(spec.StreamDuration, DefaultStreamDuration)
	return Turn{spec: spec, began: now}
}

// Refusal says why the budget does not allow a call.
type Refusal string

// Refusals; empty means none.
const (
	RefusalCalls    Refusal = "the turn has made all of its calls"
	RefusalToolTime Refusal = "the rest of the turn's time for tools is less than a call needs (1 s)"
	RefusalDeadline Refusal = "the rest of the turn's time is kept for its last answer (a call needs at least 1 s)"
)

// Count counts a call that the model requested, whatever becomes of it, and refuses
// calls beyond MaxCalls.
func (t *Turn) Count() (refused Refusal) {
	t.calls++
	if t.calls > t.spec.MaxCalls {
		return RefusalCalls
	}
	return ""
}

// Refuses returns the refusal that Reserve would return for a call now and later, or
// "" if it would not refuse.
func (t *Turn) Refuses(now time.Time) Refusal {
	if left, why := t.left(now); left < MinCall {
		return why
	}
	return ""
}

// Reserve begins a call that may run for at most want. granted is the time that it
// has: want, or the rest of the budget if less. After a Reserve without a refusal,
// call Release once, and once more for each Again.
func (t *Turn) Reserve(now time.Time, want time.Duration) (granted time.Duration, refused Refusal) {
	left, why := t.left(now)
	if left < min(want, MinCall) {
		return 0, why
	}
	t.tools.enter(now)
	t.step(now)
	return min(want, left), ""
}

// Release reports that a call that was reserved for no longer runs.
func (t *Turn) Release(now time.Time) {
	t.tools.leave(now)
	t.step(now)
}

// Again undoes a Release: a call that waited, for its start or for a human, runs
// again.
func (t *Turn) Again(now time.Time) {
	t.tools.enter(now)
	t.step(now)
}

// Waiting reports that the turn begins to wait for a human, until Resumed. Waits may
// overlap.
func (t *Turn) Waiting(now time.Time) {
	t.human.enter(now)
	t.step(now)
}

// Resumed reports the end of a wait for a human.
func (t *Turn) Resumed(now time.Time) {
	t.human.leave(now)
	t.step(now)
}

// Streaming reports that the model starts to stream, or has stopped. Repeated
// reports have no effect.
func (t *Turn) Streaming(now time.Time, on bool) {
	t.streaming = on
	t.step(now)
}

// Busy reports whether there are calls in progress, running or not. The clock of
// streaming stops while there are.
func (t *Turn) Busy(now time.Time, on bool) {
	t.busy = on
	t.step(now)
}

// step starts or stops the clock of streaming.
func (t *Turn) step(now time.Time) {
	runs := t.streaming && !t.busy && t.tools.open == 0 && t.human.open == 0
	switch {
	case runs && t.stream.open == 0:
		t.stream.enter(now)
	case !runs && t.stream.open > 0:
		t.stream.leave(now)
	}
}

// IsStreaming reports whether the model streams, by the last call of Streaming.
func (t *Turn) IsStreaming() bool { return t.streaming }

// StreamTime returns how long the model has streamed.
func (t *Turn) StreamTime(now time.Time) time.Duration { return t.stream.at(now) }

// StreamLeft returns how long the model may still stream.
func (t *Turn) StreamLeft(now time.Time) time.Duration {
	return max(t.spec.StreamDuration-t.stream.at(now), 0)
}

// StreamRuns returns StreamLeft, and whether its clock runs.
func (t *Turn) StreamRuns(now time.Time) (left time.Duration, runs bool) {
	return t.StreamLeft(now), t.stream.open > 0
}

// Calls returns the number of calls that were counted.
func (t *Turn) Calls() int { return t.calls }

// CallsLeft returns the number of calls that the turn may still make.
func (t *Turn) CallsLeft() int { return max(t.spec.MaxCalls-t.calls, 0) }

// ToolTime returns the time during which at least one call ran.
func (t *Turn) ToolTime(now time.Time) time.Duration { return t.tools.at(now) }

// HumanWait returns the time spent waiting for humans; overlapping waits count once.
func (t *Turn) HumanWait(now time.Time) time.Duration { return t.human.at(now) }

// Remaining returns the time left for calls of the turn; ok is false without a
// bound.
func (t *Turn) Remaining(now time.Time) (left time.Duration, ok bool) {
	left, _ = t.left(now)
	return max(left, 0), left != Infinite
}

// Deadline returns when the turn is over, including its reserve, unless human waits
// follow. ok is false without a deadline, or during a human wait.
func (t *Turn) Deadline(now time.Time) (at time.Time, ok bool) {
	if t.spec.Deadline <= 0 || t.human.open > 0 {
		return time.Time{}, false
	}
	return now.Add(max(t.spec.Deadline-t.elapsed(now), 0)), true
}

func (t *Turn) elapsed(now time.Time) time.Duration {
	return max(now.Sub(t.began), 0) - t.human.at(now)
}

// left returns the tighter of the two bounds, and the refusal if it is too small.
func (t *Turn) left(now time.Time) (left time.Duration, why Refusal) {
	left = Infinite
	if t.spec.ToolTime > 0 {
		left, why = t.spec.ToolTime-t.tools.at(now), RefusalToolTime
	}
	if t.spec.Deadline > 0 {
		if d := t.spec.Deadline - t.spec.Reserve - t.elapsed(now); d < left {
			left, why = d, RefusalDeadline
		}
	}
	return left, why
}
