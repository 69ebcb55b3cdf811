package cgroup

// LimitCPU brings the group's CPU limits into force. Call it when the processes
// that are to be limited have begun: what a small share makes slow before that,
// such as a fork, or a mount that holds a lock of the kernel, others wait for.
// Behind Lift or Boost it does nothing.
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
