package cgroup

// LimitCPU applies the group's CPU limits. Call it once the processes to be limited
// have started: a small share would slow down operations before that for which others
// wait, such as a fork, or a mount that holds a kernel lock. After Lift or Boost it
// does nothing.
func (g *Group) LimitCPU() error {
	if g.root.mode == ModeNone {
		return nil
	}
	return g.use(func() error {
		g.cpuMu.Lock()
		defer g.cpuMu.Unlock()
		if g.dies {
			return nil
		}
		return g.root.apply(g.leaf+"/", g.cpu)
	})
}
