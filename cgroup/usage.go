package cgroup

import (
	"errors"
	"time"
)

// Usage is the total usage of a group's process tree, and the limits that it hit. Values
// that this kernel or layout does not provide are 0, or for PidsPeak a lower bound.
type Usage struct {
	CPUUser         time.Duration
	CPUSystem       time.Duration
	MemoryPeakBytes int64 // page cache included
	PidsPeak        int64 // processes and threads; on v1 perhaps one too high: the thread that forked the first
	// Bytes to and from block devices, summed over devices (a stacked one counts
	// beside those below it). Buffered writes count on v2 only, and not before
	// they are written back.
	IOReadBytes  int64
	IOWriteBytes int64

	OOMEvents        int64 // times that the group's own memory limit ran out
	OOMKills         int64 // members killed because of the own limit
	AncestorOOMKills int64 // members killed because of an ancestor's, or the host's, memory
	ShareOOMKills    int64 // of these, members killed because of their Share's memory
	PidsLimitHits    int64 // forks refused by the own pids limit
	// Forks refused by an ancestor's pids limit. Linux 6.11 and newer don't
	// count these for a v2 group: 0.
	AncestorPidsLimitHits int64
}

// Since returns the usage and events after before was read. Peaks are not reset: they
// are the overall ones.
func (u Usage) Since(before Usage) Usage {
	u.CPUUser -= before.CPUUser
	u.CPUSystem -= before.CPUSystem
	u.IOReadBytes -= before.IOReadBytes
	u.IOWriteBytes -= before.IOWriteBytes
	u.OOMEvents -= before.OOMEvents
	u.OOMKills -= before.OOMKills
	u.AncestorOOMKills -= before.AncestorOOMKills
	u.ShareOOMKills -= before.ShareOOMKills
	u.PidsLimitHits -= before.PidsLimitHits
	u.AncestorPidsLimitHits -= before.AncestorPidsLimitHits
	if u.AncestorPidsLimitHits < 0 { // whose they are was found anew, and of all together
		u.PidsLimitHits, u.AncestorPidsLimitHits = u.PidsLimitHits+u.AncestorPidsLimitHits, 0
	}
	return u
}

// CPU returns the CPU time that the tree has used so far, dead members
// included, to the scheduler tick. It costs one small read.
func (g *Group) CPU() (time.Duration, error) {
	var used time.Duration
	err := g.use(func() error {
		stat, err := g.cpuStat()
		used = microseconds(stat.GetUsageUsec())
		return err
	})
	return used, err
}

// Usage reads the counters. They are final once the group is empty, and lost with
// Remove. If it fails, the result has what could be read.
func (g *Group) Usage() (Usage, error) {
	var u Usage
	if g.root.mode == ModeNone {
		return u, errors.Join(g.readMemory(&u), g.readPids(&u), g.readIO(&u))
	}
	err := g.use(func() error {
		return errors.Join(g.readCPU(&u), g.readMemory(&u), g.readPids(&u), g.readIO(&u))
	})
	return u, err
}

// readCPU uses cgroup2 on every layout: it accounts CPU without a controller.
func (g *Group) readCPU(u *Usage) error {
	text, err := g.again.read(g.dir, "cpu.stat")
	stat := parseCPUStat(text)
	u.CPUUser, u.CPUSystem = microseconds(stat.GetUserUsec()), microseconds(stat.GetSystemUsec())
	return err
}

func (g *Group) readMemory(u *Usage) error {
	h := g.root.limited[ctrlMemory]
	if h == nil {
		return nil
	}
	c, errOOM := g.oom.look(false)
	u.OOMEvents = c.own
	u.OOMKills, u.AncestorOOMKills = attributeOOM(c)
	if g.share.ooms() > g.shareOOMs {
		u.ShareOOMKills = u.AncestorOOMKills
	}
	if !g.root.feat.memoryPeak {
		return errOOM
	}
	file := "memory.peak"
	if h.version == 1 {
		file = "memory.max_usage_in_bytes"
	}
	text, err := g.reread(h, file)
	u.MemoryPeakBytes = parseInt(text)
	return errors.Join(errOOM, err)
}

func (g *Group) readPids(u *Usage) error {
	h := g.root.limited[ctrlPids]
	if h == nil {
		return nil
	}
	text, errPeak := "", error(nil)
	if g.root.feat.pidsPeak {
		text, errPeak = g.reread(h, "pids.peak")
		u.PidsPeak = parseInt(text)
	} else {
		u.PidsPeak = g.pids.peak()
	}
	text, err := g.reread(h, "pids.events")
	u.PidsLimitHits, u.AncestorPidsLimitHits = attributePids(pidsEvidence{
		hits: field(text, "max"), peak: u.PidsPeak, limit: g.pidsLimit(), exact: g.root.feat.exactPids,
	})
	return errors.Join(errPeak, err)
}

func (g *Group) readIO(u *Usage) error {
	h, file := g.root.limited[ctrlIO], g.root.feat.ioBytes
	if h == nil || file == "" {
		return nil
	}
	text, err := g.reread(h, file)
	if h.version == 1 {
		u.IOReadBytes, u.IOWriteBytes = parseBlkio(text)
	} else {
		u.IOReadBytes, u.IOWriteBytes = parseIOStat(text)
	}
	return err
}

// reread is read for files that each call of a kept process reads again.
func (g *Group) reread(h *hierarchy, file string) (string, error) {
	return g.again.read(h.tools, g.leaf+"/"+file)
}

func (g *Group) read(h *hierarchy, file string) (string, error) {
	return h.tools.read(g.leaf + "/" + file)
}
