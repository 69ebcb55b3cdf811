package plugin

import (
	"context"
	"sync"
)

// acks holds how far the host has stored a call's events.
type acks struct {
	mu      sync.Mutex
	seq     uint64
	changed chan struct{} // closed and replaced when seq grows
}

func newAcks() *acks { return &acks{changed: make(chan struct{})} }

func (a *acks) store(seq uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if seq <= a.seq {
		return
	}
	a.seq = seq
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *acks) load() (uint64, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seq, a.changed
}

// wait returns once the host has stored seq, or with ctx's cause.
func (a *acks) wait(ctx context.Context, seq uint64) error {
	for {
		stored, changed := a.load()
		if stored >= seq {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
