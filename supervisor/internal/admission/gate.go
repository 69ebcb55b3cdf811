// Package admission bounds how many calls run at once and how many wait, and shares
// both between those who make them.
package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Limits of a Gate. All must be positive.
type Limits struct {
	// Running slots for calls at once; Queue places for calls that wait; Wait is the
	// longest that one waits.
	Running, Queue int
	Wait           time.Duration
	// Setting is what says Running, for errors; empty where that is the host's own.
	Setting string
	// LeaveFor is how long after its last call a share without slots has one left free
	// for it by those that have some, so that its next call finds one; a fourth of all
	// are left at most. 0 leaves none.
	LeaveFor time.Duration
	// HeadStart is for how long after its start the only call of a share has two further
	// slots left free beside it by those that have some, since calls that begin and end
	// take the most CPU time; half of all are left at most. 0 leaves none.
	HeadStart time.Duration
}

const (
	leftOf     = 4 // slots one may be left free
	besideLone = 2 // slots are left free beside a call with a head start
)

// Share is who a call is for. The share with the fewest slots gets the next one, so that
// no one's queue is in the way of another's call for longer than until a slot is
// free.
type Share struct {
	// Key is the same for all calls of one; empty is one like others.
	Key string
	// Running and Waiting bound its slots and places; 0 sets neither.
	Running, Waiting int
}

// OverloadedError says why a call was not admitted.
type OverloadedError struct {
	Reason string
	Quota  bool // it is the share's own that is taken
}

func (e *OverloadedError) Error() string { return e.Reason }

// Gate admits calls in the order in which they came, of those with the same weight
// and as many slots of their share.
type Gate struct {
	limits Limits

	mu      sync.Mutex
	running int                  // slots taken
	taken   map[string]int       // of them, by the keys of shares
	waiting []*waiter            // in the order in which they came
	called  map[string]time.Time // when each share's first call began, or its last one ended; forgotten when that gives it nothing
	again   bool                 // lookAgain is to come
}

// Ask is what a call wants of a Gate.
type Ask struct {
	Share Share
	// Slots are how many at once, of those that there are; 0 is one.
	Slots int
	// Weight lets it in ahead of all that wait with less.
	Weight int64
	// Wait is the longest that it waits; 0 is the Gate's own.
	Wait time.Duration
}

// waiter is a call that wants slots.
type waiter struct {
	Ask
	turn chan struct{} // closed when it has its slots, or has lost its place
	lost error         // why, set before; the Gate's
}

// New makes a Gate.
func New(limits Limits) *Gate {
	return &Gate{limits: limits, taken: map[string]int{}, called: map[string]time.Time{}}
}

var errWaited = errors.New("waited too long")

func (g *Gate) waiter(a Ask) *waiter {
	a.Slots, a.Wait = min(max(a.Slots, 1), g.limits.Running), cmp.Or(a.Wait, g.limits.Wait)
	return &waiter{Ask: a, turn: make(chan struct{})}
}

// Try is Acquire that does not wait: ok is false where no slot is free for it.
func (g *Gate) Try(a Ask) (release func(), ok bool) {
	w := g.waiter(a)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, w)
	g.admit()
	if slices.Contains(g.waiting, w) {
		g.remove(w)
		return nil, false
	}
	return func() { g.release(w) }, true
}

// Acquire waits for slots. release gives them back and must be called once;
// never, for a call whose processes could not be killed. Errors are
// *OverloadedError and ctx's cause.
func (g *Gate) Acquire(ctx context.Context, a Ask) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w := g.waiter(a)
	release = func() { g.release(w) }
	if err := g.enter(w); err != nil {
		return nil, err
	}
	select {
	case <-w.turn: // mostly there is no wait
		return release, w.lost
	default:
	}
	ctx, cancel := context.WithTimeoutCause(ctx, w.Wait, errWaited)
	defer cancel()
	select {
	case <-w.turn:
		return release, w.lost
	case <-ctx.Done():
	}
	if !g.leave(w) { // admitted, or put out, in the same instant
		return release, w.lost
	}
	if cause := context.Cause(ctx); !errors.Is(cause, errWaited) {
		return nil, cause
	}
	why, quota := g.busy(w.Share)
	return nil, &OverloadedError{fmt.Sprintf("no slot became free within %s: %s", w.Wait, why), quota}
}

// busy says what stands in the way of a call, and whether that is its share's quota.
func (g *Gate) busy(share Share) (why string, quota bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.within(share, 1) {
		return atQuota(share.Key, share.Running, "running"), true
	}
	if g.running < g.limits.Running && g.beside(share.Key, g.left()) > 0 {
		return fmt.Sprintf("%d calls are running, and the other slots (%d) are left to those who called in the last %s", g.running, g.limits.Running-g.running, g.limits.LeaveFor), false
	}
	return g.full(), false
}

// atQuota names the quota, as the configuration does, and its value.
func atQuota(owner string, n int, quota string) string {
	return fmt.Sprintf("%s has %s %s, which is its quota (access: quota: %s)", owner, calls(n), quota, quota)
}

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

// full says that all slots are taken.
func (g *Gate) full() string {
	said := fmt.Sprintf("%d calls are running", g.limits.Running)
	if g.limits.Running == 1 {
		said = "1 call is running"
	}
	if g.limits.Setting != "" {
		said += ", as many as " + g.limits.Setting + " lets run at once (raise it to have more)"
	}
	return said
}

// enter takes slots or a place in the queue, also if there is room for it but not
// for those who come first. Where all places are taken, the share with the most of them
// loses its newest call.
func (g *Gate) enter(w *waiter) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, w)
	g.admit()
	if !slices.Contains(g.waiting, w) {
		return nil
	}
	if own := g.places(w.Share.Key); w.Share.Waiting > 0 && own > w.Share.Waiting {
		g.remove(w)
		return &OverloadedError{atQuota(w.Share.Key, own-1, "waiting") + ": make fewer at once, or try again when one has ended", true}
	}
	if len(g.waiting) <= g.limits.Queue {
		return nil
	}
	full := &OverloadedError{fmt.Sprintf("%s and all %d places in the queue are taken", g.full(), g.limits.Queue), false}
	out := g.greediest(w)
	g.remove(out)
	if out == w {
		return full
	}
	out.lost = full
	close(out.turn)
	return nil
}

// places is how many a key has in the queue.
func (g *Gate) places(key string) (n int) {
	for _, w := range g.waiting {
		if w.Share.Key == key {
			n++
		}
	}
	return n
}

// greediest is the newest call of the share with the most places; with as many as
// another, the one that has just come.
func (g *Gate) greediest(newest *waiter) *waiter {
	out, most := newest, g.places(newest.Share.Key)
	for _, w := range g.waiting {
		if n := g.places(w.Share.Key); n > most || n == most && w.Share.Key == out.Share.Key {
			out, most = w, n
		}
	}
	return out
}

func (g *Gate) remove(w *waiter) {
	g.waiting = slices.DeleteFunc(g.waiting, func(other *waiter) bool { return other == w })
}

// leave gives up a place in the queue, which may let those behind it in; false
// if the slots were already given, or the place lost.
func (g *Gate) leave(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.waiting, w) {
		return false
	}
	g.remove(w)
	g.admit()
	return true
}

func (g *Gate) release(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running -= w.Slots
	if g.taken[w.Share.Key] -= w.Slots; g.taken[w.Share.Key] == 0 {
		delete(g.taken, w.Share.Key)
		g.called[w.Share.Key] = time.Now()
	}
	g.admit()
}

// admit hands free slots to the calls that are next.
func (g *Gate) admit() {
	for w := g.next(); w != nil && g.running+w.Slots <= g.limits.Running; w = g.next() {
		if g.taken[w.Share.Key] == 0 {
			g.called[w.Share.Key] = time.Now()
		}
		g.running += w.Slots
		g.taken[w.Share.Key] += w.Slots
		g.remove(w)
		close(w.turn)
	}
	if wait := g.left().wait; wait > 0 && len(g.waiting) > 0 && g.running < g.limits.Running && !g.again {
		g.again = true
		time.AfterFunc(wait, g.lookAgain)
	}
}

func (g *Gate) lookAgain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.again = false
	g.admit()
}

// left counts shares for which slots are left free.
type left struct {
	idle int           // called lately, and have no slot
	lone int           // their only call has just begun
	wait time.Duration // until there is one less
}

// left forgets shares for which none are any more.
func (g *Gate) left() (l left) {
	for key, at := range g.called {
		count, wait := &l.idle, g.limits.LeaveFor
		if g.taken[key] > 0 {
			count, wait = &l.lone, g.limits.HeadStart
		}
		wait -= time.Since(at)
		switch {
		case wait <= 0:
			delete(g.called, key)
			continue
		case g.taken[key] > 1: // until it has one slot again, or none
			continue
		}
		if *count++; l.wait == 0 || wait < l.wait {
			l.wait = wait
		}
	}
	return l
}

// beside is how many slots a share that has some leaves free.
func (g *Gate) beside(key string, l left) int {
	if _, young := g.called[key]; young && g.taken[key] == 1 {
		l.lone--
	}
	return min(min(l.idle, g.limits.Running/leftOf)+besideLone*l.lone, g.limits.Running/2)
}

// next is the call that the next slots are for, even if there are not enough yet:
// the one of greatest weight, then of the share with the fewest slots, then the one
// that has waited longest. Shares that have all slots of their quota are passed over, and
// those that have some if only those are free that are left to others.
func (g *Gate) next() (first *waiter) {
	left := g.left()
	for _, w := range g.waiting {
		switch {
		case !g.within(w.Share, w.Slots), g.taken[w.Share.Key] > 0 && g.running >= g.limits.Running-g.beside(w.Share.Key, left):
		case first == nil, w.Weight > first.Weight, w.Weight == first.Weight && g.taken[w.Share.Key] < g.taken[first.Share.Key]:
			first = w
		}
	}
	return first
}

func (g *Gate) within(share Share, slots int) bool {
	return share.Running <= 0 || g.taken[share.Key]+slots <= share.Running
}

// Load is how many slots are taken and how many calls wait.
func (g *Gate) Load() (running, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running, len(g.waiting)
}
