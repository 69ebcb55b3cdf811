// Package admission bounds how many calls run at once and how many wait.
package admission

import (
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
}

// OverloadedError says why a call was not admitted.
type OverloadedError struct{ Reason string }

func (e *OverloadedError) Error() string { return e.Reason }

// Gate admits calls in the order in which they came, of those with the same
// weight.
type Gate struct {
	limits Limits

	mu      sync.Mutex
	running int // slots taken
	waiting []waiter
}

// waiter is a call that wants so many slots; turn is closed when it has them. The
// greatest weight is first.
type waiter struct {
	turn   chan struct{}
	slots  int
	weight int64
}

// New makes a Gate.
func New(limits Limits) *Gate { return &Gate{limits: limits} }

var errWaited = errors.New("waited too long")

// Acquire waits for a slot. release gives it back and must be called once;
// never, for a call whose processes could not be killed. Errors are
// *OverloadedError and ctx's cause.
func (g *Gate) Acquire(ctx context.Context) (release func(), err error) {
	return g.AcquireSlots(ctx, 1, g.limits.Wait)
}

// AcquireByWeight is Acquire ahead of all that wait with less weight. Acquire's own
// is 0.
func (g *Gate) AcquireByWeight(ctx context.Context, weight int64) (release func(), err error) {
	return g.acquire(ctx, waiter{slots: 1, weight: weight}, g.limits.Wait)
}

// AcquireSlots is Acquire for several slots at once, of those that there are, and
// with a wait of its own.
func (g *Gate) AcquireSlots(ctx context.Context, slots int, wait time.Duration) (release func(), err error) {
	return g.acquire(ctx, waiter{slots: min(slots, g.limits.Running)}, wait)
}

func (g *Gate) acquire(ctx context.Context, w waiter, wait time.Duration) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	release = func() { g.release(w.slots) }
	turn, err := g.enter(w)
	if err != nil || turn == nil {
		return release, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errWaited)
	defer cancel()
	select {
	case <-turn:
		return release, nil
	case <-ctx.Done():
	}
	if !g.leave(turn) { // admitted in the same instant
		return release, nil
	}
	if cause := context.Cause(ctx); !errors.Is(cause, errWaited) {
		return nil, cause
	}
	return nil, &OverloadedError{fmt.Sprintf("no slot became free within %s: %d calls are running", wait, g.limits.Running)}
}

// enter takes slots (nil turn) or a place in the queue, also if there is room
// for it but not for those who came before.
func (g *Gate) enter(w waiter) (turn chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 && g.running+w.slots <= g.limits.Running {
		g.running += w.slots
		return nil, nil
	}
	if len(g.waiting) >= g.limits.Queue {
		return nil, &OverloadedError{fmt.Sprintf("%d calls are running and all %d places in the queue are taken", g.running, g.limits.Queue)}
	}
	w.turn = make(chan struct{})
	at := slices.IndexFunc(g.waiting, func(other waiter) bool { return other.weight < w.weight })
	if at < 0 {
		at = len(g.waiting)
	}
	g.waiting = slices.Insert(g.waiting, at, w)
	return w.turn, nil
}

// leave gives up a place in the queue, which may let those behind it in; false
// if the slots were already given.
func (g *Gate) leave(turn chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w.turn == turn {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			g.admit()
			return true
		}
	}
	return false
}

func (g *Gate) release(slots int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running -= slots
	g.admit()
}

// admit hands free slots to the calls that have waited longest.
func (g *Gate) admit() {
	for len(g.waiting) > 0 && g.running+g.waiting[0].slots <= g.limits.Running {
		g.running += g.waiting[0].slots
		close(g.waiting[0].turn)
		g.waiting = g.waiting[1:]
	}
}

// Load is how many slots are taken and how many calls wait.
func (g *Gate) Load() (running, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running, len(g.waiting)
}
