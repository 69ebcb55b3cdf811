package fleet

// Waiting is how many calls wait for a worker to have a slot.
func (f *Fleet) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.line)
}
