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

// NoReserve, as a TurnSpec's Reserve, keeps nothing.
const NoReserve time.Duration = -1

// MinCall is the least time that is worth starting a call for.
const MinCall = time.Second

// TurnSpec bounds one turn. Zero fields are the defaults: 50 calls, no limit of
// tool time, no deadline, a reserve of 10 s, and 60 s for the model to stream.
type TurnSpec struct {
	// MaxCalls is how many calls the turn may make.
	MaxCalls int
	// ToolTime bounds the time in which at least one call runs.
	ToolTime time.Duration
	// Deadline bounds the whole turn, less the time in which it waits for a
	// human. Reserve of it is kept for the model's last answer (NoReserve for
	// nothing).
	Deadline time.Duration
	Reserve  time.Duration
	// StreamDuration bounds how long the model may stream, all its round trips
	// together, without the time of tools and humans; 0 is 60 s.
	StreamDuration time.Duration
}

// Check refuses negative bounds: what is left of something may be less than nothing, and
// must not become no bound at all.
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

// Turn keeps a turn's budget: three clocks, which never consume one another. Tool
// time is the union of the intervals in which calls run; the deadline stands still
// while the turn waits for a human; the model's streaming is what is left of its
// round trips without the time of tools and humans.
//
// It doesn't tick: its owner tells it what happened and when. A Turn is a value
// and not safe for concurrent use.
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

// NewTurn gives the budget of a turn that begins now.
func NewTurn(now time.Time, spec TurnSpec) Turn {
	spec.MaxCalls = orDefault(spec.MaxCalls, DefaultMaxCalls)
	spec.Reserve = max(cmp.Or(spec.Reserve, DefaultReserve), 0)
	spec.StreamDuration = orDefault(spec.StreamDuration, DefaultStreamDuration)
	return Turn{spec: spec, began: now}
}

// Refusal says why a call does not fit.
type Refusal string

// Refusals; empty means none.
const (
	RefusalCalls    Refusal = "the turn has made all of its calls"
	RefusalToolTime Refusal = "the turn's time for tools is used up, but for less than a call needs (1 s)"
	RefusalDeadline Refusal = "the rest of the turn's time is kept for its last answer (a call needs at least 1 s)"
)

// Count counts a call that the model has asked for, whatever becomes of it, and
// refuses those beyond the cap.
func (t *Turn) Count() (refused Refusal) {
	t.calls++
	if t.calls > t.spec.MaxCalls {
		return RefusalCalls
	}
	return ""
}

// Refuses says why Reserve would refuse a call now, and so from now on; empty if
// it would not.
func (t *Turn) Refuses(now time.Time) Refusal {
	if left, why := t.left(now); left < MinCall {
		return why
	}
	return ""
}

// Reserve begins a call that wants to run for at most want if it fits, now or
// shrunk to what is left: granted is the time that it has. Each Reserve without
// a refusal is followed by one Release, and one more for each Again.
func (t *Turn) Reserve(now time.Time, want time.Duration) (granted time.Duration, refused Refusal) {
	left, why := t.left(now)
	if left < min(want, MinCall) {
		return 0, why
	}
	t.tools.enter(now)
	t.step(now)
	return min(want, left), ""
}

// Release tells that a call which was reserved for runs no more.
func (t *Turn) Release(now time.Time) {
	t.tools.leave(now)
	t.step(now)
}

// Again takes back a Release: a call that waited, for its start or for a human,
// runs on.
func (t *Turn) Again(now time.Time) {
	t.tools.enter(now)
	t.step(now)
}

// Waiting and Resumed tell that the turn begins and ends to wait for a human;
// waits may overlap.
func (t *Turn) Waiting(now time.Time) {
	t.human.enter(now)
	t.step(now)
}

// Resumed ends what Waiting began.
func (t *Turn) Resumed(now time.Time) {
	t.human.leave(now)
	t.step(now)
}

// Streaming tells that the model begins to stream, or has ended; telling it again
// changes nothing.
func (t *Turn) Streaming(now time.Time, on bool) {
	t.streaming = on
	t.step(now)
}

// Busy tells that calls are under way, whether they run yet or not, or no longer.
// The model's time stands still meanwhile.
func (t *Turn) Busy(now time.Time, on bool) {
	t.busy = on
	t.step(now)
}

// step has the clock of the model's streaming run, or stand still.
func (t *Turn) step(now time.Time) {
	runs := t.streaming && !t.busy && t.tools.open == 0 && t.human.open == 0
	switch {
	case runs && t.stream.open == 0:
		t.stream.enter(now)
	case !runs && t.stream.open > 0:
		t.stream.leave(now)
	}
}

// IsStreaming says whether the model streams, as far as was told.
func (t *Turn) IsStreaming() bool { return t.streaming }

// StreamTime is how long the model has streamed, StreamLeft how long it may still.
func (t *Turn) StreamTime(now time.Time) time.Duration { return t.stream.at(now) }

// StreamLeft is described with StreamTime.
func (t *Turn) StreamLeft(now time.Time) time.Duration {
	return max(t.spec.StreamDuration-t.stream.at(now), 0)
}

// StreamRuns is StreamLeft with whether its clock runs.
func (t *Turn) StreamRuns(now time.Time) (left time.Duration, runs bool) {
	return t.StreamLeft(now), t.stream.open > 0
}

// Calls counts those that were asked for.
func (t *Turn) Calls() int { return t.calls }

// CallsLeft counts those that may still be made.
func (t *Turn) CallsLeft() int { return max(t.spec.MaxCalls-t.calls, 0) }

// ToolTime is how long calls have run, HumanWait how long somebody was waited
// for, each as a union of intervals.
func (t *Turn) ToolTime(now time.Time) time.Duration { return t.tools.at(now) }

// HumanWait is described with ToolTime.
func (t *Turn) HumanWait(now time.Time) time.Duration { return t.human.at(now) }

// Remaining is what calls may still take of the turn; ok is false without a
// bound.
func (t *Turn) Remaining(now time.Time) (left time.Duration, ok bool) {
	left, _ = t.left(now)
	return max(left, 0), left != Infinite
}

// Deadline is when the whole turn is over, reserve included, as far as is known
// now: it moves while a human is waited for. ok is false without one, or during
// such a wait.
func (t *Turn) Deadline(now time.Time) (at time.Time, ok bool) {
	if t.spec.Deadline <= 0 || t.human.open > 0 {
		return time.Time{}, false
	}
	return now.Add(max(t.spec.Deadline-t.elapsed(now), 0)), true
}

func (t *Turn) elapsed(now time.Time) time.Duration {
	return max(now.Sub(t.began), 0) - t.human.at(now)
}

// left is the tighter of the two bounds, and the refusal that it would be.
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
