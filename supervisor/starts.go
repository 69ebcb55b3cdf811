package supervisor

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// startsPerCPU may be under way for each CPU, and minStarts at least: more of them
// take longer each, and are done no sooner.
const (
	startsPerCPU = 4
	minStarts    = 8
)

// startTurn is how long a start keeps its turn: one that hangs, as at a granted
// folder of a dead file server, holds up nobody.
const startTurn = 500 * time.Millisecond

// defaultCPUWeight is that of a call without one of its own (cgroup v2's default).
const defaultCPUWeight = 100

// starts lets a few sandboxes be built at a time: one of those with the greatest
// CPU weight first, and the oldest of these. It ends before the tool's own program
// begins, so what waits does not wait for a tool.
type starts struct {
	mu      sync.Mutex
	free    int
	waiting []*starter
}

// starter is a start that waits for its turn.
type starter struct {
	weight int64
	turn   chan struct{} // closed when it has come
}

func newStarts() *starts { return &starts{free: max(minStarts, startsPerCPU*runtime.GOMAXPROCS(0))} }

// begin waits for a turn; over gives it back.
func (s *starts) begin(ctx context.Context, weight int64) (over func(), err error) {
	w := &starter{weight: cmp.Or(weight, defaultCPUWeight), turn: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.next()
	s.mu.Unlock()
	select {
	case <-w.turn:
		over := sync.OnceFunc(s.end)
		late := time.AfterFunc(startTurn, over)
		return func() { late.Stop(); over() }, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.waiting, w); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	} else {
		s.free++
		s.next()
	}
	return nil, context.Cause(ctx)
}

func (s *starts) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.next()
}

// next gives free turns away. s is locked.
func (s *starts) next() {
	for s.free > 0 && len(s.waiting) > 0 {
		first := slices.MaxFunc(s.waiting, func(a, b *starter) int { return cmp.Compare(a.weight, b.weight) })
		s.waiting = slices.DeleteFunc(s.waiting, func(w *starter) bool { return w == first })
		s.free--
		close(first.turn)
	}
}
