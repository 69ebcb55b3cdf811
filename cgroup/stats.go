package cgroup

import (
	"time"

	v1 "github.com/containerd/cgroups/v3/cgroup1/stats"
	v2 "github.com/containerd/cgroups/v3/cgroup2/stats"
)

// What the kernel's statistics files say is kept in containerd's types; see
// docs/decisions/0009-containerd-cgroups.md for what else is, and what is not.

// cpuStat reads cgroup2's cpu.stat, which every layout has.
func (g *Group) cpuStat() (*v2.CPUStat, error) {
	text, err := g.dir.read("cpu.stat")
	return parseCPUStat(text), err
}

func parseCPUStat(text string) *v2.CPUStat {
	return &v2.CPUStat{UsageUsec: count(text, "usage_usec"), UserUsec: count(text, "user_usec"), SystemUsec: count(text, "system_usec")}
}

// memoryEvents reads memory.events.
func memoryEvents(text string) *v2.MemoryEvents {
	return &v2.MemoryEvents{
		Low: count(text, "low"), High: count(text, "high"), Max: count(text, "max"),
		Oom: count(text, "oom"), OomKill: count(text, "oom_kill"), OomGroupKill: count(text, "oom_group_kill"),
	}
}

// oomControl reads v1's memory.oom_control.
func oomControl(text string) *v1.MemoryOomControl {
	return &v1.MemoryOomControl{OomKillDisable: count(text, "oom_kill_disable"), UnderOom: count(text, "under_oom"), OomKill: count(text, "oom_kill")}
}

// count is field for these types: never negative.
func count(text, key string) uint64 { return uint64(max(field(text, key), 0)) }

func microseconds(v uint64) time.Duration { return usec(int64(v)) } // count's are no larger
