package cgroup

import (
	"fmt"
	"strconv"
	"strings"
)

// flavourV2 speaks cgroup2. Source: Documentation/admin-guide/cgroup-v2.rst.
var flavourV2 = flavour{
	limit: map[string]limiter{ctrlCPU: cpuV2, ctrlIO: ioV2, ctrlMemory: memoryV2, ctrlPids: pidsV2},
	undo:  map[string]func(Limits) []write{ctrlCPU: undoCPUV2, ctrlIO: undoIOV2, ctrlMemory: undoMemoryV2, ctrlPids: undoPids},
}

const fileOOMGroup = "memory.oom.group"

func memoryV2(l Limits, have func(string) bool) ([]write, error) {
	// Also without a limit: an ancestor's OOM must not leave half a call.
	w := []write{{ctrlMemory, fileOOMGroup, "1"}}
	if l.MemoryBytes == 0 {
		return w, nil
	}
	w = append(w, write{ctrlMemory, "memory.max", itoa(l.MemoryBytes)})
	if have("memory.swap.max") { // absent where the kernel has no swap
		w = append(w, write{ctrlMemory, "memory.swap.max", "0"})
	}
	return w, nil
}

func undoMemoryV2(l Limits) []write {
	if l.MemoryBytes == 0 {
		return nil
	}
	return []write{{ctrlMemory, "memory.max", "max"}, {ctrlMemory, "memory.swap.max", "max"}}
}

func pidsV2(l Limits, _ func(string) bool) ([]write, error) {
	if l.Pids == 0 {
		return nil, nil
	}
	return []write{{ctrlPids, "pids.max", itoa(l.Pids)}}, nil
}

func undoPids(l Limits) []write {
	if l.Pids == 0 {
		return nil
	}
	return []write{{ctrlPids, "pids.max", "max"}}
}

func cpuV2(l Limits, have func(string) bool) ([]write, error) {
	var w []write
	if l.CPUWeight != 0 {
		w = append(w, write{ctrlCPU, "cpu.weight", itoa(l.CPUWeight)})
	}
	if l.CPUPercent == 0 {
		return w, nil
	}
	if !have("cpu.max") {
		return nil, missingFile(ctrlCPU, "CPUPercent", "cpu.max", "use a kernel with CONFIG_CFS_BANDWIDTH, or remove the limit")
	}
	return append(w, write{ctrlCPU, "cpu.max", fmt.Sprintf("%d %d", l.CPUPercent*quotaUsPerCent, cpuPeriodUs)}), nil
}

func undoCPUV2(l Limits) []write {
	if l.CPUPercent == 0 {
		return nil
	}
	return []write{{ctrlCPU, "cpu.max", "max"}}
}

func ioV2(l Limits, have func(string) bool) ([]write, error) {
	w, err := ioWeightV2(l, have)
	if err != nil {
		return nil, err
	}
	if len(l.IOMax) != 0 && !have("io.max") {
		return nil, missingFile(ctrlIO, "IOMax", "io.max", "use a kernel with CONFIG_BLK_DEV_THROTTLING, or remove the limit")
	}
	for _, m := range l.IOMax {
		w = append(w, write{ctrlIO, "io.max", m.lineV2(func(v int64) string { return orMax(v) })})
	}
	return w, nil
}

// ioWeightV2 sets the weight for both policies that may be in force: which one
// is depends on each disk's scheduler.
func ioWeightV2(l Limits, have func(string) bool) ([]write, error) {
	if l.IOWeight == 0 {
		return nil, nil
	}
	var w []write
	if have("io.weight") {
		w = append(w, write{ctrlIO, "io.weight", itoa(l.IOWeight)})
	}
	if have("io.bfq.weight") {
		w = append(w, write{ctrlIO, "io.bfq.weight", itoa(bfqWeight(l.IOWeight))})
	}
	if len(w) == 0 {
		return nil, missingFile(ctrlIO, "IOWeight", "io.weight", "use the bfq disk scheduler or a kernel with CONFIG_BLK_CGROUP_IOCOST, or remove the limit")
	}
	return w, nil
}

func undoIOV2(l Limits) []write {
	var w []write
	for _, m := range l.IOMax {
		w = append(w, write{ctrlIO, "io.max", m.lineV2(func(int64) string { return "max" })})
	}
	return w
}

func (m IOMax) lineV2(value func(int64) string) string {
	var b strings.Builder
	b.WriteString(m.device())
	for _, f := range m.fields() {
		fmt.Fprintf(&b, " %s=%s", f.key, value(f.v))
	}
	return b.String()
}

func orMax(v int64) string {
	if v == 0 {
		return "max"
	}
	return itoa(v)
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }

// bfqWeight maps 1..10000 to bfq's 1..1000 with 100 fixed, as systemd does
// (BFQ_WEIGHT in src/shared/cgroup-setup.h).
func bfqWeight(w int64) int64 {
	if w <= defaultWeight {
		return w
	}
	return defaultWeight + (w-defaultWeight)*(1000-defaultWeight)/(maxWeight-defaultWeight)
}
