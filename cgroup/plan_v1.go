package cgroup

// flavourV1 speaks the v1 controllers. Source: Documentation/admin-guide/cgroup-v1/.
var flavourV1 = flavour{
	limit: map[string]limiter{ctrlCPU: cpuV1, ctrlIO: ioV1, ctrlMemory: memoryV1, ctrlPids: pidsV2},
	undo:  map[string]func(Limits) []write{ctrlCPU: undoCPUV1, ctrlIO: undoIOV1, ctrlMemory: undoMemoryV1, ctrlPids: undoPids},
}

const (
	fileMemoryV1 = "memory.limit_in_bytes"
	fileMemswV1  = "memory.memsw.limit_in_bytes"
	fileQuotaV1  = "cpu.cfs_quota_us"
	// fileSocketsV1 bounds all sockets' buffers, despite its name.
	fileSocketsV1 = "memory.kmem.tcp.limit_in_bytes"
)

// memoryV1 bounds memory, then memory and swap together: the kernel wants
// memsw never below memory. Without memsw, swappiness 0 keeps a group in RAM.
func memoryV1(l Limits, have func(string) bool) ([]write, error) {
	if l.MemoryBytes == 0 {
		return nil, nil
	}
	v := itoa(l.MemoryBytes)
	w := []write{{ctrlMemory, fileMemoryV1, v}}
	if have(fileSocketsV1) {
		// v1 counts the memory of sockets apart, and only if told to.
		w = append(w, write{ctrlMemory, fileSocketsV1, itoa(l.MemoryBytes / 4)})
	}
	if have(fileMemswV1) {
		return append(w, write{ctrlMemory, fileMemswV1, v}), nil
	}
	return append(w, write{ctrlMemory, "memory.swappiness", "0"}), nil
}

func undoMemoryV1(l Limits) []write {
	if l.MemoryBytes == 0 {
		return nil
	}
	return []write{{ctrlMemory, fileMemswV1, "-1"}, {ctrlMemory, fileMemoryV1, "-1"}}
}

func cpuV1(l Limits, have func(string) bool) ([]write, error) {
	var w []write
	if l.CPUWeight != 0 {
		w = append(w, write{ctrlCPU, "cpu.shares", itoa(cpuShares(l.CPUWeight))})
	}
	if l.CPUPercent == 0 {
		return w, nil
	}
	if !have(fileQuotaV1) {
		return nil, missingFile(ctrlCPU, "CPUPercent", fileQuotaV1, "use a kernel with CONFIG_CFS_BANDWIDTH, or remove the limit")
	}
	return append(w, write{ctrlCPU, fileQuotaV1, itoa(l.CPUPercent * quotaUsPerCent)}), nil
}

func undoCPUV1(l Limits) []write {
	if l.CPUPercent == 0 {
		return nil
	}
	return []write{{ctrlCPU, fileQuotaV1, "-1"}}
}

// cpuShares gives a weight the same strength in v1: the kernel itself maps
// weight 100 to 1024 (sched_weight_from_cgroup) and takes 2 as the least.
func cpuShares(weight int64) int64 {
	return max(2, (weight*1024+defaultWeight/2)/defaultWeight)
}

func ioV1(l Limits, have func(string) bool) ([]write, error) {
	w, err := ioWeightV1(l, have)
	if err != nil {
		return nil, err
	}
	for _, m := range l.IOMax {
		for _, f := range m.fields() {
			if f.v == 0 {
				continue
			}
			if !have(f.v1File) {
				return nil, missingFile(ctrlIO, "IOMax", f.v1File, "use a kernel with CONFIG_BLK_DEV_THROTTLING, or remove the limit")
			}
			w = append(w, write{ctrlIO, f.v1File, m.device() + " " + itoa(f.v)})
		}
	}
	return w, nil
}

func ioWeightV1(l Limits, have func(string) bool) ([]write, error) {
	if l.IOWeight == 0 {
		return nil, nil
	}
	if have("blkio.bfq.weight") {
		return []write{{ctrlIO, "blkio.bfq.weight", itoa(bfqWeight(l.IOWeight))}}, nil
	}
	return nil, missingFile(ctrlIO, "IOWeight", "blkio.bfq.weight", "use the bfq disk scheduler, or remove the limit")
}

func undoIOV1(l Limits) []write {
	var w []write
	for _, m := range l.IOMax {
		for _, f := range m.fields() {
			if f.v != 0 {
				w = append(w, write{ctrlIO, f.v1File, m.device() + " 0"})
			}
		}
	}
	return w
}
