package spec

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/sandbox"
)

// Unlimited turns off a limit whose zero value means a default.
const Unlimited int64 = math.MaxInt64

// MinMemoryBytes is the least memory limit of a call. With less, as measured, no
// plugin of the Go SDK answers a Describe, and no command starts.
const MinMemoryBytes int64 = 4 << 20

// Limits are the limits of one call, for its whole process tree. Zero fields mean
// the supervisor's limits, and in a supervisor's limits DefaultLimits.
type Limits struct {
	// MemoryBytes (swap is always 0), Pids (tasks: processes and threads) and
	// CPUPercent (of one CPU) may be Unlimited.
	MemoryBytes, Pids, CPUPercent int64
	// CPUWeight and IOWeight are 1 to 10000; 0 leaves the kernel's 100.
	CPUWeight, IOWeight int64
	// IOMax bounds the bandwidth per device.
	IOMax []cgroup.IOMax
	// CPUTime bounds the CPU time of all processes together; 0 is unlimited.
	// A call that exceeds it is killed.
	CPUTime time.Duration
	// OutputBytes is how much of each stream is kept; the rest is dropped, which
	// does not end the call. OutputTotalBytes bounds all streams together; 0 is
	// unlimited. A call that exceeds it is killed.
	OutputBytes, OutputTotalBytes int64
	// SpillBytes bounds each spill file; 0 is 64 MiB.
	SpillBytes int64
	// OpenFiles bounds the open files of one process; 0 is 1024. Making a sandbox may
	// need 16.
	OpenFiles int64
	// WorkspaceBytes, WorkspaceInodes and TmpBytes bound the files of a sandboxed
	// call, which count towards its memory. See sandbox.Storage for the defaults.
	WorkspaceBytes, WorkspaceInodes, TmpBytes int64
	// Network bounds the network use of a call with network grants.
	Network network.Limits
}

// DefaultLimits returns the limits of a call for which none are configured.
func DefaultLimits() Limits {
	return Limits{
		MemoryBytes: 512 << 20, Pids: 64, CPUPercent: 100,
		OutputBytes: 1 << 20, SpillBytes: 64 << 20, Network: network.DefaultLimits(),
	}
}

// Over returns l with its zero fields set from base.
func (l Limits) Over(base Limits) Limits {
	fill := func(v *int64, from int64) {
		if *v == 0 {
			*v = from
		}
	}
	fill(&l.MemoryBytes, base.MemoryBytes)
	fill(&l.Pids, base.Pids)
	fill(&l.CPUPercent, base.CPUPercent)
	fill(&l.CPUWeight, base.CPUWeight)
	fill(&l.IOWeight, base.IOWeight)
	fill(&l.OutputBytes, base.OutputBytes)
	fill(&l.OutputTotalBytes, base.OutputTotalBytes)
	fill(&l.SpillBytes, base.SpillBytes)
	fill(&l.OpenFiles, base.OpenFiles)
	fill(&l.WorkspaceBytes, base.WorkspaceBytes)
	fill(&l.WorkspaceInodes, base.WorkspaceInodes)
	fill(&l.TmpBytes, base.TmpBytes)
	l.Network = l.Network.Over(base.Network)
	l.CPUTime = cmp.Or(l.CPUTime, base.CPUTime)
	if l.IOMax == nil {
		l.IOMax = base.IOMax
	}
	return l
}

// Within returns l, lowered to other's memory, pids, CPU, CPU time, output and open files
// where other sets them. Zero fields of l count as in DefaultLimits. A workspace or /tmp too
// large for the memory, towards which it counts, is lowered, too, unless the workspace is
// persistent.
func (l Limits) Within(other Limits, persistent bool) Limits {
	full := l.Over(DefaultLimits())
	for _, v := range []struct{ own, filled, bound *int64 }{
		{&l.MemoryBytes, &full.MemoryBytes, &other.MemoryBytes},
		{&l.Pids, &full.Pids, &other.Pids},
		{&l.CPUPercent, &full.CPUPercent, &other.CPUPercent},
		{&l.OutputBytes, &full.OutputBytes, &other.OutputBytes},
	} {
		if *v.bound > 0 {
			*v.own = min(*v.filled, *v.bound)
		}
	}
	if other.MemoryBytes > 0 {
		stored := sandbox.Storage{WorkspaceBytes: l.WorkspaceBytes, TmpBytes: l.TmpBytes}.Within(finite(l.MemoryBytes), persistent)
		l.WorkspaceBytes, l.TmpBytes = stored.WorkspaceBytes, stored.TmpBytes
	}
	if other.OpenFiles > 0 {
		l.OpenFiles = min(cmp.Or(l.OpenFiles, defaultOpenFiles), other.OpenFiles)
	}
	if other.OutputTotalBytes > 0 {
		l.OutputTotalBytes = min(cmp.Or(l.OutputTotalBytes, Unlimited), other.OutputTotalBytes)
	}
	if other.CPUTime > 0 {
		l.CPUTime = min(cmp.Or(l.CPUTime, math.MaxInt64), other.CPUTime)
	}
	return l
}

const defaultOpenFiles = 1024 // see Limits.OpenFiles

// maxKeptBytes bounds what is kept of one stream in the host's memory.
const maxKeptBytes = 256 << 20

// Validate returns an error of one line if l is invalid.
func (l Limits) Validate() error {
	_, err := l.Bounds()
	return err
}

// Bounds are checked limits. 0 means unlimited, except for OpenFiles and the
// storage limits, where it means the sandbox's default.
type Bounds Limits

// Bounds checks l. An error is one line.
func (l Limits) Bounds() (Bounds, error) {
	for _, v := range []struct {
		name  string
		value int64
	}{
		{"cpuTime", int64(l.CPUTime)},
		{"output", l.OutputBytes},
		{"outputTotal", l.OutputTotalBytes},
		{"spill", l.SpillBytes},
		{"openFiles", l.OpenFiles},
		{"workspace", l.WorkspaceBytes},
		{"workspaceInodes", l.WorkspaceInodes},
		{"tmp", l.TmpBytes},
	} {
		if v.value < 0 {
			return Bounds{}, fmt.Errorf("limit %s: %d is negative: give a positive value, or leave it out for the default", v.name, v.value)
		}
	}
	if err := l.Network.Validate(); err != nil {
		return Bounds{}, err
	}
	if l.OutputBytes > maxKeptBytes {
		return Bounds{}, fmt.Errorf("limit output: %d bytes would be held in memory: give at most %d and a spill folder for more", l.OutputBytes, maxKeptBytes)
	}
	b := Bounds(l)
	b.MemoryBytes, b.Pids, b.CPUPercent = finite(l.MemoryBytes), finite(l.Pids), finite(l.CPUPercent)
	if b.MemoryBytes > 0 && b.MemoryBytes < MinMemoryBytes {
		return Bounds{}, fmt.Errorf("memory limit %d is too small for any call: toolhost's own part of one needs 4MiB already; a small plugin takes 5MiB, a command 8MiB and what it needs itself", l.MemoryBytes)
	}
	return b, b.checkGroup()
}

// checkGroup checks the kernel's ranges in the terms of Limits, where 0 is the default.
func (b Bounds) checkGroup() error {
	for _, v := range []struct {
		name               string
		value, least, most int64
	}{
		{"memory limit", b.MemoryBytes, MinMemoryBytes, cgroup.MaxMemoryBytes},
		{"pids limit", b.Pids, 1, cgroup.MaxPids - sandbox.LauncherTasks},
		{"CPU percent", b.CPUPercent, 1, cgroup.MaxCPUPercent},
	} {
		if v.value != 0 && (v.value < v.least || v.value > v.most) {
			return fmt.Errorf("%s %d is out of range: take %d to %d, or infinity for no limit", v.name, v.value, v.least, v.most)
		}
	}
	return b.Group().Validate()
}

// Group returns the limits that the kernel enforces by cgroup. The launcher's
// tasks are added to the tool's.
func (b Bounds) Group() cgroup.Limits {
	g := cgroup.Limits{
		MemoryBytes: b.MemoryBytes, Pids: b.Pids, CPUPercent: b.CPUPercent,
		CPUWeight: b.CPUWeight, IOWeight: b.IOWeight, IOMax: b.IOMax,
	}
	if g.Pids > 0 {
		g.Pids += sandbox.LauncherTasks
	}
	return g
}

// finite turns Unlimited into 0.
func finite(v int64) int64 {
	if v == Unlimited {
		return 0
	}
	return v
}

// Applied returns the limits in the form of a result.
func (b Bounds) Applied() api.AppliedLimits {
	return api.AppliedLimits{
		MemoryBytes: b.MemoryBytes, Pids: b.Pids, CPUPercent: b.CPUPercent,
		CPUWeight: b.CPUWeight, IOWeight: b.IOWeight, CPUTimeMs: b.CPUTime.Milliseconds(),
		OutputBytes: b.OutputBytes, OutputTotalBytes: b.OutputTotalBytes,
	}
}
