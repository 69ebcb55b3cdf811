// Package tasks counts the goroutines of a supervisor's calls, so that its end can
// wait for them and name those that remain.
package tasks

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Tasks are the goroutines of a supervisor's calls, by name. Close waits for
// them; each ends when its call, or its instance, does. The goroutine that
// reads a command's input is not among them: its reader is the caller's, and
// may never return.
type Tasks struct {
	mu      sync.Mutex
	running map[string]int
	idle    chan struct{} // closed when none runs; nil unless somebody waits
}

// Run runs f in a goroutine of its own.
func (t *Tasks) Run(name string, f func()) {
	t.add(name, 1)
	go func() {
		defer t.add(name, -1)
		f()
	}()
}

func (t *Tasks) add(name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == nil {
		t.running = map[string]int{}
	}
	t.running[name] += n
	if t.running[name] == 0 {
		delete(t.running, name)
	}
	if len(t.running) == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// Wait waits until none runs, but not longer than limit, and returns the names
// of those that still do.
func (t *Tasks) Wait(limit time.Duration) (left []string) {
	select {
	case <-t.over():
	case <-time.After(limit):
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.running))
}

func (t *Tasks) over() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.running) == 0 {
		over := make(chan struct{})
		close(over)
		return over
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	return t.idle
}
