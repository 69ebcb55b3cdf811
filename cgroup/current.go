package cgroup

import (
	"errors"
	"time"
)

// Current is a snapshot of what a group's process tree uses.
type Current struct {
	CPU         time.Duration // used so far, dead members included
	MemoryBytes int64         // page cache included; 0 without a memory controller
	Pids        int64         // processes and threads; 0 without a pids controller
}

// Current returns what the tree uses now. It costs three small reads. If it fails, c
// has what could be read; after Remove that is nothing, and the error is [ErrRemoved].
func (g *Group) Current() (c Current, err error) {
	err = g.use(func() error {
		stat, errCPU := g.cpuStat()
		c.CPU = microseconds(stat.GetUsageUsec())
		var text string
		var errMemory, errPids error
		if h := g.root.limited[ctrlMemory]; h != nil {
			file := "memory.current"
			if h.version == 1 {
				file = "memory.usage_in_bytes"
			}
			text, errMemory = g.read(h, file)
			c.MemoryBytes = parseInt(text)
		}
		if h := g.root.limited[ctrlPids]; h != nil {
			text, errPids = g.read(h, "pids.current")
			c.Pids = parseInt(text)
		}
		return errors.Join(errCPU, errMemory, errPids)
	})
	return c, err
}
