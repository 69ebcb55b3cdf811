package turn

import "time"

// Until is when the result of a call comes too late: nobody is asked about it for
// longer, nor does it run on. The zero value is never.
type Until struct {
	At time.Time
	// Why says whose time it is, for the model: "the client waits ...".
	Why string
}

const (
	// answerShare of the remaining time, at most maxAnswerTime, is kept after a
	// question for the use of its answer.
	answerShare   = 5
	maxAnswerTime = 5 * time.Second
)

// cut shortens the wait for a human to what is left; false if it is that short.
// A wait of no time at all is one of a millisecond.
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
