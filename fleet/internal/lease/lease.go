// Package lease decides how long a worker runs calls for a caller that it does not hear,
// and when the caller may be certain that they have ended.
//
// A lease is renewed by a round trip alone. The worker's beats are numbered; a caller
// names the newest that it has heard in a beat of its own, and the worker's lease runs
// from when it sent that one. So a link that carries one direction only renews nothing,
// and a beat that was late on its way renews nothing that it should not.
//
// Times are readings of a clock that never jumps and counts a machine's sleep, each
// side's own; only beats' numbers cross the wire. The package is pure, and its types are
// not safe for concurrent use.
package lease

import "time"

// Min and Max bound the lease that a worker may have.
const (
	Min = 2 * time.Second
	Max = time.Minute
)

// kept is how many times of beats are kept.
const kept = 256

// Apart has the times of beats last for longer than the longest lease.
const Apart = 250 * time.Millisecond

// Beats are those that a worker has sent, the same to all callers. The zero value is
// before the first.
type Beats struct {
	// Apart is how far apart the times are that are kept, however often beats are sent: a
	// beat between two counts from the first of them.
	Apart time.Duration

	sent, times uint64
	from        [kept]uint64 // the beats of the times
	at          [kept]time.Duration
}

// Send numbers the next beat, from 1.
func (b *Beats) Send(now time.Duration) (n uint64) {
	b.sent++
	if b.times == 0 || now-b.at[(b.times-1)%kept] >= b.Apart {
		b.from[b.times%kept], b.at[b.times%kept] = b.sent, now
		b.times++
	}
	return b.sent
}

// SentAt is when a beat was sent, or up to Apart before; ok is false for one that never was,
// or too long ago.
func (b *Beats) SentAt(n uint64) (at time.Duration, ok bool) {
	if n == 0 || n > b.sent {
		return 0, false
	}
	for i := b.times; i > 0 && b.times-i < kept; i-- {
		if j := (i - 1) % kept; b.from[j] <= n {
			return b.at[j], true
		}
	}
	return 0, false
}

// Hold is a worker's lease for one caller. The zero value is one that is over.
type Hold struct{ until time.Duration }

// Renew takes a caller's echo of a beat. What is not a beat of b renews nothing.
func (h *Hold) Renew(b *Beats, echoed uint64, lease time.Duration) {
	if at, ok := b.SentAt(echoed); ok {
		h.until = max(h.until, at+lease)
	}
}

// Until is when the lease is over.
func (h *Hold) Until() time.Duration { return h.until }

// Over says whether what runs for the caller has to be ended.
func (h *Hold) Over(now time.Duration) bool { return now >= h.until }

// Watch is what a caller knows of one life of a worker. The zero value has heard nothing.
type Watch struct {
	newest, echoed   uint64
	heard            time.Duration // when newest came
	echoedHeard      time.Duration // when the newest that was echoed had come
	everHeard, holds bool
}

// Heard takes a beat of the worker. One that was overtaken says nothing new.
func (w *Watch) Heard(n uint64, now time.Duration) (news bool) {
	if news = n > w.newest; news {
		w.newest, w.heard, w.everHeard = n, now, true
	}
	return news
}

// Echo is the beat to be named to the worker; 0 before the first one.
func (w *Watch) Echo() (n uint64) {
	if w.newest > w.echoed {
		w.echoed, w.echoedHeard, w.holds = w.newest, w.heard, true
	}
	return w.echoed
}

// Silent is how long the worker was not heard; since is when the caller began to listen.
func (w *Watch) Silent(since, now time.Duration) time.Duration {
	if w.everHeard {
		since = w.heard
	}
	return now - since
}

// Ended is when all that the worker ran for this caller has ended, unless a later Echo
// prolongs it: its lease was over by then, and its ladder takes at most stop. It holds if
// what enforces the lease at the worker's machine does.
func (w *Watch) Ended(lease, stop time.Duration) time.Duration {
	if !w.holds {
		return 0
	}
	return w.echoedHeard + lease + stop
}

// Seconds are those of a grace period, rounded up, so that few timers do for many calls.
func Seconds(grace time.Duration) int64 { return int64((grace + time.Second - 1) / time.Second) }

// Ladder is how long after the lease a launcher ends a call with so many seconds of grace:
// a worker that runs has done so by then.
func Ladder(seconds int64) time.Duration { return time.Duration(seconds)*time.Second + time.Second }

// Stop is how long after its lease all of a call has ended, launchers' work included.
func Stop(grace time.Duration) time.Duration { return Ladder(Seconds(grace)) + time.Second/2 }
