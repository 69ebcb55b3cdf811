package turn

import "time"

// Until is a deadline of a call's result: neither the call nor a question about it
// lasts longer. The zero value means no deadline.
type Until struct {
	At time.Time
	// Why says whose deadline it is, for the model: "the client waits ...".
	Why string
}

const (
	// answerShare of the remaining time, at most maxAnswerTime, is kept after a
	// question for the use of its answer.
	answerShare   = 5
	maxAnswerTime = 5 * time.Second
)

// cut shortens the wait for a human to the time left, but not below a millisecond,
// and reports whether it did.
func (u Until) cut(wait time.Duration, now time.Time) (left time.Duration, cut bool) {
	if u.At.IsZero() {
		return wait, false
	}
	left = u.At.Sub(now)
	left = max(left-min(left/answerShare, maxAnswerTime), time.Millisecond)
	if left >= wait {
		return wait, false
	}
	return left, true
}

// left is the time that a call may run for, of what it is granted.
func (u Until) left(granted time.Duration, now time.Time) time.Duration {
	if u.At.IsZero() {
		return granted
	}
	return min(granted, max(u.At.Sub(now), 0))
}
