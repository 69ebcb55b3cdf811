package cgroup

import (
	"os"
	"slices"
	"strings"
)

// features are what this kernel's files can tell, found once at Open.
type features struct {
	memoryPeak  bool
	pidsPeak    bool
	exactPids   bool // pids.events counts hits of the group's own limit only
	ioBytes     string
	swapEscapes bool // swap is on and the kernel doesn't count it per group
}

func (r *Root) probeFeatures() features {
	mem, pids, io := r.layout[ctrlMemory], r.layout[ctrlPids], r.layout[ctrlIO]
	return features{
		memoryPeak:  mem.version == 1 || mem.has("memory.peak"),
		pidsPeak:    pids.has("pids.peak"),
		exactPids:   pids.version == 2 && pids.has("pids.events.local") && !r.unified.hasOption("pids_localevents"),
		ioBytes:     ioBytesFile(io),
		swapEscapes: !mem.has("memory.swap.max") && !mem.has(fileMemswV1) && swapIsOn(),
	}
}

func ioBytesFile(io controllerLayout) string {
	for _, f := range []string{"io.stat", "blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"} {
		if io.has(f) {
			return f
		}
	}
	return ""
}

func (u *unified) hasOption(name string) bool {
	return slices.ContainsFunc(u.mounts, func(m mount) bool { return isV2(m) && slices.Contains(m.options, name) })
}

// swapIsOn reads /proc/swaps, whose first line is a heading.
func swapIsOn() bool {
	b, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(b), "\n") > 1
}
