package mcpserver

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// gate lets the calls of one session run, in the order in which they came: so
// many at once, and an exclusive one alone.
type gate struct {
	most int

	mu      sync.Mutex
	running int
	alone   bool // an exclusive call runs
	waiting []*waiter
}

type waiter struct {
	exclusive bool
	ready     chan struct{} // closed when it may run
}

// maxWaiting bounds the calls of one session that wait.
const maxWaiting = 256

var errFull = errors.New("too many calls of this session wait: make fewer at once")

// enter waits for its place, or for ctx's end. Without an error leave must be
// called.
func (g *gate) enter(ctx context.Context, exclusive bool) (leave func(), err error) {
	w := &waiter{exclusive: exclusive, ready: make(chan struct{})}
	g.mu.Lock()
	if len(g.waiting) >= maxWaiting {
		g.mu.Unlock()
		return nil, errFull
	}
	g.waiting = append(g.waiting, w)
	g.admit()
	g.mu.Unlock()
	leave = func() { g.leave(w) }
	select {
	case <-w.ready:
		return leave, nil
	case <-ctx.Done():
		if !g.giveUp(w) {
			leave()
		}
		return nil, context.Cause(ctx)
	}
}

// admit lets in the first call, and after it all that fit beside.
func (g *gate) admit() {
	for len(g.waiting) > 0 {
		w := g.waiting[0]
		if g.alone || w.exclusive && g.running > 0 || g.running >= g.most {
			return
		}
		g.waiting = g.waiting[1:]
		g.running++
		g.alone = w.exclusive
		close(w.ready)
	}
}

func (g *gate) leave(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if w.exclusive {
		g.alone = false
	}
	g.admit()
}

// giveUp is false if it was let in meanwhile.
func (g *gate) giveUp(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, w)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	g.admit()
	return true
}
