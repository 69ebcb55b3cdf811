package call

import (
	"sync"
	"syscall"
	"time"
)

// precise is how long before the time an alarm leaves Go's timers, which
// epoll(7) rounds to milliseconds, for nanosleep(2), which does not.
const precise = 1500 * time.Microsecond

// alarm wakes a call's owner at one time, exactly. It may fire for a time that
// was since replaced: the owner looks at its clocks, not at the alarm.
type alarm struct {
	fired   chan struct{}
	timer   *time.Timer
	at      time.Time
	running sync.WaitGroup // what fires
	// sleep is for the last part of the wait.
	sleep func(until time.Time)
}

func newAlarm(sleep func(until time.Time)) *alarm {
	return &alarm{fired: make(chan struct{}, 1), sleep: sleep}
}

// set replaces the time; the zero time is never. One that need not be exact takes no
// thread.
func (a *alarm) set(at time.Time, exact bool) {
	if at.Equal(a.at) {
		return
	}
	a.stop()
	a.at = at
	if at.IsZero() {
		return
	}
	wait := time.Until(at)
	if exact {
		wait -= precise
	}
	a.running.Add(1)
	a.timer = time.AfterFunc(wait, func() {
		defer a.running.Done()
		if exact {
			a.sleep(at)
		}
		select {
		case a.fired <- struct{}{}:
		default:
		}
	})
}

// rang is for the owner to say when it has heard the alarm: the same time may be set
// again.
func (a *alarm) rang() { a.at = time.Time{} }

func (a *alarm) stop() {
	if a.timer != nil && a.timer.Stop() {
		a.running.Done()
	}
	a.timer, a.at = nil, time.Time{}
}

// wait waits for what fires still, after stop.
func (a *alarm) wait() { a.running.Wait() }

// sleepUntil sleeps on however often a signal of Go's runtime interrupts it.
func sleepUntil(at time.Time) {
	for left := time.Until(at); left > 0; left = time.Until(at) {
		ts := syscall.NsecToTimespec(int64(left))
		_ = syscall.Nanosleep(&ts, nil)
	}
}
