package cgroup

import (
	"errors"
	"time"
)

// Baseline is what a group's tree had used, and what it had, at a moment from which
// its usage is counted.
type Baseline struct {
	used         Usage
	memory, pids int64 // at that moment
	fromHere     bool  // the kernel's memory peak begins there
}

// Begin has usage counted from now on, see [Usage.SinceBegin]. The memory peak
// begins anew where the kernel can do that: in v1's controller, or in none. What
// could be read is returned beside an error.
func (g *Group) Begin() (b Baseline, err error) {
	if g.root.mode == ModeNone {
		b.used, err = g.Usage()
		return b, err
	}
	err = g.use(func() error {
		var memory, pids error
		if h := g.root.limited[ctrlMemory]; h != nil && h.version == 1 {
			memory = h.tools.write(g.leaf+"/memory.max_usage_in_bytes", "0")
			b.fromHere = memory == nil
		} else if h != nil {
			b.memory, memory = g.number(h, "memory.current")
		}
		if h := g.root.limited[ctrlPids]; h != nil {
			b.pids, pids = g.number(h, "pids.current")
		}
		return errors.Join(memory, pids)
	})
	used, usage := g.Usage()
	b.used = used
	return b, errors.Join(err, usage)
}

func (g *Group) number(h *hierarchy, file string) (int64, error) {
	text, err := g.read(h, file)
	return parseInt(text), err
}

// SinceBegin is what was used and hit since then. A peak that the kernel has not
// passed since is what the tree had then: it may have had a little more.
func (u Usage) SinceBegin(b Baseline) Usage {
	if u.MemoryPeakBytes == b.used.MemoryPeakBytes && !b.fromHere {
		u.MemoryPeakBytes = b.memory
	}
	if u.PidsPeak == b.used.PidsPeak {
		u.PidsPeak = b.pids
	}
	return u.Since(b.used)
}

// CPU is the time used before.
func (b Baseline) CPU() time.Duration { return b.used.CPUUser + b.used.CPUSystem }
