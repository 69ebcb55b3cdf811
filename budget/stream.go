package budget

import "time"

// Stream bounds how a tool streams, apart from the timeout. Each bound is off at 0
// or less, and none counts while the call waits for a human.
type Stream struct {
	// Initial is the longest time from the tool's start to its first message. A
	// heartbeat is not a message and does not end it.
	Initial time.Duration
	// Gap is the longest silence. Messages and heartbeats end a silence. It counts
	// from the first message, or without Initial from the tool's start.
	Gap time.Duration
	// Total is the longest time from the tool's start to its end, whatever it
	// streams. It can end a call before its timeout and never after it.
	Total time.Duration
}

// idleAfter gives the running time at which silence has lasted too long.
func (s Stream) idleAfter(started, lastSign time.Duration, messages bool) time.Duration {
	if !messages && s.Initial > 0 {
		return add(started, s.Initial)
	}
	return add(lastSign, s.silence(messages))
}

// silence is how long the tool may be silent.
func (s Stream) silence(messages bool) time.Duration {
	switch {
	case !messages && s.Initial > 0:
		return s.Initial
	case s.Gap > 0:
		return s.Gap
	}
	return Infinite
}

func (s Stream) totalAfter(started time.Duration) time.Duration {
	if s.Total <= 0 {
		return Infinite
	}
	return add(started, s.Total)
}
