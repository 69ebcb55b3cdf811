package cgroup

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func controllerFiles(version int, files string) controllerLayout {
	c := controllerLayout{version: version, files: map[string]bool{}}
	for _, f := range strings.Fields(files) {
		c.files[f] = true
	}
	return c
}

var (
	fullV2 = layout{
		ctrlMemory: controllerFiles(2, "memory.max memory.swap.max memory.oom.group"),
		ctrlPids:   controllerFiles(2, "pids.max"),
		ctrlCPU:    controllerFiles(2, "cpu.max cpu.weight"),
		ctrlIO:     controllerFiles(2, "io.max io.weight io.bfq.weight"),
	}
	fullV1 = layout{
		ctrlMemory: controllerFiles(1, "memory.limit_in_bytes memory.memsw.limit_in_bytes memory.swappiness"),
		ctrlPids:   controllerFiles(1, "pids.max"),
		ctrlCPU:    controllerFiles(1, "cpu.shares cpu.cfs_quota_us"),
		ctrlIO:     controllerFiles(1, "blkio.bfq.weight blkio.throttle.read_bps_device blkio.throttle.write_bps_device blkio.throttle.read_iops_device blkio.throttle.write_iops_device"),
	}
	allLimits = Limits{
		MemoryBytes: 1 << 20, Pids: 64, CPUPercent: 150, CPUWeight: 50, IOWeight: 1000,
		IOMax: []IOMax{{Major: 254, ReadBytes: 1000, WriteOps: 7}},
	}
)

func lines(writes []write) string {
	var b strings.Builder
	for _, w := range writes {
		b.WriteString(w.file + "=" + w.value + "\n")
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	noSwapV1 := layout{ctrlMemory: controllerFiles(1, "memory.limit_in_bytes memory.swappiness")}
	noSwapV2 := layout{ctrlMemory: controllerFiles(2, "memory.max memory.oom.group")}
	cases := []struct {
		name string
		lay  layout
		l    Limits
		want string
	}{
		{"v2 nothing", fullV2, Limits{}, "memory.oom.group=1\n"},
		{"v1 nothing", fullV1, Limits{}, ""},
		{"no controllers, no limits", layout{}, Limits{}, ""},
		{"v2 all", fullV2, allLimits, `cpu.weight=50
cpu.max=150000 100000
io.weight=1000
io.bfq.weight=181
io.max=254:0 rbps=1000 wbps=max riops=max wiops=7
memory.oom.group=1
memory.max=1048576
memory.swap.max=0
pids.max=64
`},
		{"v1 all", fullV1, allLimits, `cpu.shares=512
cpu.cfs_quota_us=150000
blkio.bfq.weight=181
blkio.throttle.read_bps_device=254:0 1000
blkio.throttle.write_iops_device=254:0 7
memory.limit_in_bytes=1048576
memory.memsw.limit_in_bytes=1048576
pids.max=64
`},
		{"v1 without swap accounting", noSwapV1, Limits{MemoryBytes: 1 << 20}, "memory.limit_in_bytes=1048576\nmemory.swappiness=0\n"},
		{"v2 without swap", noSwapV2, Limits{MemoryBytes: 1 << 20}, "memory.oom.group=1\nmemory.max=1048576\n"},
	}
	for _, c := range cases {
		got, err := c.lay.plan(c.l)
		if err != nil || lines(got) != c.want {
			t.Errorf("%s: plan\n%s%v; want\n%s", c.name, lines(got), err, c.want)
		}
	}
}

func TestPlanFailsClosed(t *testing.T) {
	without := func(lay layout, controller, files string) layout {
		l := layout{}
		for k, v := range lay {
			l[k] = v
		}
		if files == "" {
			delete(l, controller)
		} else {
			l[controller] = controllerFiles(lay[controller].version, files)
		}
		return l
	}
	cases := []struct {
		lay                        layout
		l                          Limits
		controller, limit, missing string
	}{
		{without(fullV2, ctrlMemory, ""), Limits{MemoryBytes: 1 << 20}, ctrlMemory, "MemoryBytes", ""},
		{without(fullV1, ctrlPids, ""), Limits{Pids: 1}, ctrlPids, "Pids", ""},
		{without(fullV2, ctrlCPU, ""), Limits{CPUWeight: 1}, ctrlCPU, "CPUWeight", ""},
		{without(fullV2, ctrlCPU, "cpu.weight"), Limits{CPUPercent: 1}, ctrlCPU, "CPUPercent", "cpu.max"},
		{without(fullV1, ctrlCPU, "cpu.shares"), Limits{CPUPercent: 1}, ctrlCPU, "CPUPercent", fileQuotaV1},
		{without(fullV2, ctrlIO, "io.max"), Limits{IOWeight: 1}, ctrlIO, "IOWeight", "io.weight"},
		{without(fullV2, ctrlIO, "io.weight"), allLimits, ctrlIO, "IOMax", "io.max"},
		{without(fullV1, ctrlIO, "blkio.throttle.read_bps_device"), Limits{IOWeight: 5}, ctrlIO, "IOWeight", "blkio.bfq.weight"},
		{without(fullV1, ctrlIO, "blkio.bfq.weight"), allLimits, ctrlIO, "IOMax", "blkio.throttle.read_bps_device"},
	}
	for _, c := range cases {
		writes, err := c.lay.plan(c.l)
		e, ok := errors.AsType[*ControllerError](err)
		if !ok || writes != nil || e.Controller != c.controller || e.Limit != c.limit || e.Missing != c.missing {
			t.Errorf("plan(%+v) = %v, %+v; want %s %s %s", c.l, writes, err, c.controller, c.limit, c.missing)
			continue
		}
		if s := e.Error(); strings.Contains(s, "\n") || !strings.Contains(s, c.controller) || e.Remedy == "" {
			t.Errorf("message %q", s)
		}
	}
}

func TestUndo(t *testing.T) {
	cases := []struct {
		lay  layout
		of   []string
		want string
	}{
		{fullV2, []string{ctrlCPU, ctrlIO}, "cpu.max=max\nio.max=254:0 rbps=max wbps=max riops=max wiops=max\n"},
		{fullV1, []string{ctrlCPU, ctrlIO}, "cpu.cfs_quota_us=-1\nblkio.throttle.read_bps_device=254:0 0\nblkio.throttle.write_iops_device=254:0 0\n"},
		{fullV2, []string{ctrlMemory, ctrlPids}, "memory.max=max\nmemory.swap.max=max\npids.max=max\n"},
		{fullV1, []string{ctrlMemory, ctrlPids}, "memory.memsw.limit_in_bytes=-1\nmemory.limit_in_bytes=-1\npids.max=max\n"},
		{layout{}, allControllers, ""},
	}
	for _, c := range cases {
		if got := lines(c.lay.undo(allLimits, c.of...)); got != c.want {
			t.Errorf("undo %v:\n%swant\n%s", c.of, got, c.want)
		}
		if got := c.lay.undo(Limits{}, c.of...); len(got) != 0 {
			t.Errorf("undo of nothing: %v", got)
		}
	}
}

func TestToolsWeight(t *testing.T) {
	for _, c := range []struct {
		lay  layout
		want string
	}{{fullV1, "cpu.shares=2048\n"}, {fullV2, "cpu.weight=200\n"}, {layout{}, ""}} {
		got := c.lay.weight(toolsWeight)
		if lines(got) != c.want {
			t.Errorf("tools' weight %q, want %q", lines(got), c.want)
		}
	}
}

func TestWeights(t *testing.T) {
	for weight, want := range map[int64][2]int64{1: {10, 1}, 50: {512, 50}, 100: {1024, 100}, 10000: {102400, 1000}} {
		if shares, bfq := cpuShares(weight), bfqWeight(weight); shares != want[0] || bfq != want[1] {
			t.Errorf("weight %d: shares %d, bfq %d; want %v", weight, shares, bfq, want)
		}
	}
}

func TestLimitsOfCoversControllers(t *testing.T) {
	for _, c := range allControllers {
		if len(limitsOf[c]) == 0 || flavourV1.limit[c] == nil || flavourV2.limit[c] == nil || flavourV1.undo[c] == nil || flavourV2.undo[c] == nil {
			t.Errorf("controller %s is not complete", c)
		}
	}
	if !slices.IsSorted(allControllers) {
		t.Error("controllers are not sorted")
	}
}
