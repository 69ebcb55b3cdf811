package fleet

import "slices"

// Waiting is how many calls wait for a worker to have a slot.
func (f *Fleet) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.line)
}

// HasDrained says whether a worker has said that it takes no more of this caller's calls.
func (f *Fleet) HasDrained(worker string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.peers[worker]
	return p != nil && (p.beat.Draining || slices.Contains(p.beat.Drains, f.life))
}
