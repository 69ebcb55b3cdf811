package fleet

import (
	"slices"

	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// Drain tells a worker to take no more calls of this caller. The worker then ends when its
// calls are over, if it has no other callers or its owner lets this one drain it. Drain does
// not wait; it reports whether the worker is known. The drain lasts until the worker is
// restarted, or the next Fleet is opened.
func (f *Fleet) Drain(name string) bool {
	f.mu.Lock()
	p := f.peers[name]
	known := p != nil && f.shown(p)
	if known {
		p.drain = p.epoch
	}
	f.mu.Unlock()
	if known {
		f.sendDrains()
	}
	return known
}

// sendDrains asks the workers that are to drain, and do not say yet that they do.
func (f *Fleet) sendDrains() {
	var ask []*fleetv1.Attempt
	f.mu.Lock()
	for _, p := range f.peers {
		if p.drain == p.epoch && !p.beat.Draining && !slices.Contains(p.beat.Drains, f.life) && f.shown(p) {
			ask = append(ask, &fleetv1.Attempt{Caller: f.config.Key.Public(), Life: f.life, Worker: p.name, Epoch: p.epoch})
		}
	}
	f.mu.Unlock()
	for _, id := range ask {
		f.control(id, "", &fleetv1.Control{What: &fleetv1.Control_Drain{Drain: &fleetv1.Drain{}}})
	}
}

// Knows reports whether a worker is configured or was heard, and is not removed.
func (f *Fleet) Knows(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, configured := f.config.Workers[name]
	return !f.removed[name] && (configured || f.peers[name] != nil)
}

// Remove removes a worker from this Fleet: its messages are ignored and nothing is sent to it
// any more, so that its lease expires and its calls are lost. For the next Fleet, put the
// worker in Config.Removed.
//
// An engine may still accept the worker's connections: see package fleet/engine.
func (f *Fleet) Remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed[name] = true
	if p := f.peers[name]; p != nil {
		_ = p.frames.Unsubscribe()
	}
	f.kickAll()
}
