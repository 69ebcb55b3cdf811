package cgroup

import (
	"errors"
	"time"
)

// Baseline is a snapshot of a group's usage, from which later usage is counted.
type Baseline struct {
	used         Usage
	memory, pids int64 // at that moment
	fromHere     bool  // the kernel's memory peak begins there
}

// Begin returns a baseline for [Usage.SinceBegin]. It resets the memory peak if the
// kernel allows that, as v1's controller does. If it fails, b has what could be read.
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

// SinceBegin returns the usage and the events since b. A peak that was not exceeded
// since is the value at b, which may be a little low.
func (u Usage) SinceBegin(b Baseline) Usage {
	if u.MemoryPeakBytes == b.used.MemoryPeakBytes && !b.fromHere {
		u.MemoryPeakBytes = b.memory
	}
	if u.PidsPeak == b.used.PidsPeak {
		u.PidsPeak = b.pids
	}
	return u.Since(b.used)
}

// CPU returns the CPU time used before the baseline.
func (b Baseline) CPU() time.Duration { return b.used.CPUUser + b.used.CPUSystem }
