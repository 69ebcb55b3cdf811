package cgroup

import "errors"

// Boost gives a group that was killed the CPU time that dying takes: on a busy
// machine a share that is meant for tools can make SIGKILL take seconds. EndBoost
// ends it, as Remove does; neither needs to be called, and both may be again.
// For a moment all groups together have more than their share, too, and no CPU
// quota. A group that is gone is not an error.
func (g *Group) Boost() error {
	err := g.use(func() error {
		if !g.boosted.CompareAndSwap(false, true) {
			return nil
		}
		return errors.Join(g.boostAll(1), g.prefer())
	})
	if err == ErrRemoved || gone(err) {
		return nil
	}
	return err
}

// prefer gives the group at least the weight of one that has none of its own.
func (g *Group) prefer() error {
	g.cpuMu.Lock()
	defer g.cpuMu.Unlock()
	g.dies = true
	return g.root.apply(g.leaf+"/", g.root.layout.weight(max(g.limits.CPUWeight, defaultWeight)))
}

// EndBoost ends Boost for a group that does not die.
func (g *Group) EndBoost() {
	g.root.mu.RLock()
	defer g.root.mu.RUnlock()
	if g.boosted.CompareAndSwap(true, false) && !g.root.closed {
		_ = g.boostAll(-1)
	}
}

// boostAll counts a group that is boosted, or no more, in all bounds that it is in.
func (g *Group) boostAll(by int) error {
	err := g.root.all.boost(by)
	if g.share != nil {
		err = errors.Join(err, g.share.boost(by))
	}
	return err
}

// weight is the write that sets a CPU weight; none where there is no such file.
func (l layout) weight(weight int64) []write {
	c, ok := l[ctrlCPU]
	switch {
	case ok && c.version == 1 && c.has("cpu.shares"):
		return []write{{ctrlCPU, "cpu.shares", itoa(cpuShares(weight))}}
	case ok && c.version == 2 && c.has("cpu.weight"):
		return []write{{ctrlCPU, "cpu.weight", itoa(weight)}}
	}
	return nil
}
