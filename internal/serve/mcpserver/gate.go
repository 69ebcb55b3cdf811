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
	inside  []*waiter // in the order in which they were let in
	waiting []*waiter
}

type waiter struct {
	of        *call
	exclusive bool
	ready     chan struct{} // closed when it may run
}

// maxWaiting bounds the calls of one session that wait.
const maxWaiting = 256

var errFull = errors.New("too many calls of this session wait: make fewer at once")

// enter waits for its place, or for ctx's end. Without an error leave must be
// called.
func (g *gate) enter(ctx context.Context, of *call, exclusive bool) (leave func(), err error) {
	w := &waiter{of: of, exclusive: exclusive, ready: make(chan struct{})}
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
		alone := w.exclusive || len(g.inside) > 0 && g.inside[0].exclusive
		if alone && len(g.inside) > 0 || len(g.inside) >= g.most {
			return
		}
		g.waiting = g.waiting[1:]
		g.inside = append(g.inside, w)
		close(w.ready)
	}
}

// ahead is the first of the calls that one in line waits for to leave; nil for one that is
// not in line.
func (g *gate) ahead(of *call) *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.inside) == 0 || !slices.ContainsFunc(g.waiting, func(w *waiter) bool { return w.of == of }) {
		return nil
	}
	return g.inside[0].of
}

func (g *gate) leave(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside = slices.DeleteFunc(g.inside, func(one *waiter) bool { return one == w })
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
