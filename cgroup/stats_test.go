package cgroup

import (
	"testing"
	"time"
)

// What is read into containerd's types is what the kernel wrote, and never negative.
func TestStatistics(t *testing.T) {
	cpu := parseCPUStat("usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 1\n")
	if cpu.GetUsageUsec() != 30 || cpu.GetUserUsec() != 20 || cpu.GetSystemUsec() != 10 {
		t.Errorf("cpu.stat: %v", cpu)
	}
	if got := microseconds(cpu.GetUsageUsec()); got != 30*time.Microsecond {
		t.Errorf("%s", got)
	}
	if got := microseconds(parseCPUStat("usage_usec 18446744073709551615\n").GetUsageUsec()); got <= 0 {
		t.Errorf("the largest count is %s", got)
	}
	memory := memoryEvents("low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n")
	if memory.GetLow() != 1 || memory.GetHigh() != 2 || memory.GetMax() != 3 || memory.GetOom() != 4 || memory.GetOomKill() != 5 || memory.GetOomGroupKill() != 6 {
		t.Errorf("memory.events: %v", memory)
	}
	control := oomControl("oom_kill_disable 0\nunder_oom 1\noom_kill 7\n")
	if control.GetUnderOom() != 1 || control.GetOomKill() != 7 || control.GetOomKillDisable() != 0 {
		t.Errorf("memory.oom_control: %v", control)
	}
}
