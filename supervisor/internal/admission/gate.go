// Package admission bounds how many calls run at once and how many wait.
package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Limits of a Gate. All must be positive.
type Limits struct {
	// Running calls at once; Queue places for calls that wait; Wait is the
	// longest that one waits.
	Running, Queue int
	Wait           time.Duration
}

// OverloadedError says why a call was not admitted.
type OverloadedError struct{ Reason string }

func (e *OverloadedError) Error() string { return e.Reason }

// Gate admits calls in the order in which they came.
type Gate struct {
	limits Limits

	mu      sync.Mutex
	running int
	waiting []chan struct{} // closed when its call is admitted
}

// New makes a Gate.
func New(limits Limits) *Gate { return &Gate{limits: limits} }

var errWaited = errors.New("waited too long")

// Acquire waits for a slot. release gives it back and must be called once;
// never, for a call whose processes could not be killed. Errors are
// *OverloadedError and ctx's cause.
func (g *Gate) Acquire(ctx context.Context) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	turn, err := g.enter()
	if err != nil || turn == nil {
		return g.release, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.limits.Wait, errWaited)
	defer cancel()
	select {
	case <-turn:
		return g.release, nil
	case <-ctx.Done():
	}
	if !g.leave(turn) { // admitted in the same instant
		return g.release, nil
	}
	if cause := context.Cause(ctx); !errors.Is(cause, errWaited) {
		return nil, cause
	}
	return nil, &OverloadedError{fmt.Sprintf("no slot became free within %s: %d calls are running", g.limits.Wait, g.limits.Running)}
}

// enter takes a slot (nil turn) or a place in the queue.
func (g *Gate) enter() (turn chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running < g.limits.Running {
		g.running++
		return nil, nil
	}
	if len(g.waiting) >= g.limits.Queue {
		return nil, &OverloadedError{fmt.Sprintf("%d calls are running and all %d places in the queue are taken", g.running, g.limits.Queue)}
	}
	turn = make(chan struct{})
	g.waiting = append(g.waiting, turn)
	return turn, nil
}

// leave gives up a place in the queue; false if the slot was already given.
func (g *Gate) leave(turn chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w == turn {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// release hands the slot to the call that has waited longest.
func (g *Gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.running--
		return
	}
	close(g.waiting[0])
	g.waiting = g.waiting[1:]
}

// Load is how many calls run and wait.
func (g *Gate) Load() (running, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running, len(g.waiting)
}
