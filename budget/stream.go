package budget

import "time"

// Stream bounds a tool's silence and run, in addition to the timeout. A bound of 0 or
// less is off. The clocks stop while the call waits for a human.
type Stream struct {
	// Initial is the longest time from the tool's start to its first message.
	// Heartbeats are not messages.
	Initial time.Duration
	// Gap is the longest silence. Messages and heartbeats end a silence. It counts
	// from the first message, or without Initial from the tool's start.
	Gap time.Duration
	// Total is the longest time from the tool's start to its end, whatever it
	// streams. It does not extend the timeout.
	Total time.Duration
}

// idleAfter returns the running time at which silence has lasted too long.
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
