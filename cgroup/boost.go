package cgroup

import "errors"

// Boost gives a killed group the CPU time that its processes need to die: on a busy
// machine, with a tool's CPU weight, SIGKILL can take seconds. EndBoost and Remove end
// it; neither must be called, and Boost and EndBoost may be called again. For a moment
// all groups together also have a higher weight and no CPU quota. It is not an error if
// the group is gone.
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

// EndBoost ends Boost, for a group that does not die.
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
