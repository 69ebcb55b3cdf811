package plugin

import (
	"context"
	"sync"
	"time"
)

// callContext ends at a deadline that stands still while a human is asked, as
// the host's own clock does. It does not state it: a context's Deadline must not
// move, and one with a later timeout that is derived from it would rely on it.
type callContext struct {
	context.Context
	end context.CancelCauseFunc

	mu       sync.Mutex
	deadline time.Time
	timer    *time.Timer
	waits    int
	since    time.Time // when the first of them began
}

func newCallContext(parent context.Context, left time.Duration) *callContext {
	c := &callContext{deadline: time.Now().Add(left)}
	c.Context, c.end = context.WithCancelCause(parent)
	c.timer = time.AfterFunc(left, func() { c.end(ErrDeadline) })
	return c
}

// pause stops the clock; waits may overlap.
func (c *callContext) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits == 0 {
		c.since = time.Now()
		c.timer.Stop()
	}
	c.waits++
}

func (c *callContext) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits--
	if c.waits > 0 {
		return
	}
	c.deadline = c.deadline.Add(time.Since(c.since))
	c.timer.Reset(time.Until(c.deadline))
}

func (c *callContext) release() {
	c.mu.Lock()
	c.timer.Stop()
	c.mu.Unlock()
	c.end(nil)
}
