package cgroup

import (
	"fmt"
	"math"
)

// Limits are the limits of one group, for its whole process tree. Zero means that
// the group sets no limit; limits of ancestors apply in any case.
type Limits struct {
	MemoryBytes int64   // memory in bytes, page cache included; swap is then 0. On OOM the whole group dies
	Pids        int64   // processes and threads together
	CPUPercent  int64   // CPU quota per 100 ms, in percent of one CPU: 200 is two CPUs
	CPUWeight   int64   // share among sibling groups under contention, 1 to 10000; default 100
	IOWeight    int64   // the same for block devices, 1 to 10000; default 100
	IOMax       []IOMax // bandwidth and operation limits, at most one entry per device
}

// IOMax bounds a group's I/O on one block device, per second. Zero means
// unlimited. Source: cgroup-v2.rst, "io.max".
type IOMax struct {
	Major, Minor uint32 // device number of a whole disk, as in /proc/partitions
	ReadBytes    int64
	WriteBytes   int64
	ReadOps      int64
	WriteOps     int64
}

const (
	maxWeight        = 10_000
	defaultWeight    = 100
	cpuPeriodUs      = 100_000 // the kernel's default period
	maxIOMaxDevices  = 64
	quotaUsPerCent   = cpuPeriodUs / 100
	zeroMeansNoLimit = "use 0 for no limit"
)

// Ranges of limits; 0 means unlimited.
const (
	MinMemoryBytes = 64 << 10                // below this not even exec succeeds
	MaxMemoryBytes = math.MaxInt64 &^ 0xffff // page counters round up to pages of up to 64 KiB
	MaxPids        = 4 * 1 << 20             // PID_MAX_LIMIT on 64 bits; the kernel refuses more
	MaxCPUPercent  = 1_000_000               // 10,000 CPUs; keeps the quota far from the kernel's overflow check
)

// Validate checks every field against the range that the kernel accepts.
// Its error is one line naming the field, the value and the remedy.
func (l Limits) Validate() error {
	checks := []struct {
		name     string
		v        int64
		min, max int64
	}{
		{"memory limit", l.MemoryBytes, MinMemoryBytes, MaxMemoryBytes},
		{"pids limit", l.Pids, 1, MaxPids},
		{"CPU percent", l.CPUPercent, 1, MaxCPUPercent},
		{"CPU weight", l.CPUWeight, 1, maxWeight},
		{"IO weight", l.IOWeight, 1, maxWeight},
	}
	for _, c := range checks {
		if err := checkRange(c.name, c.v, c.min, c.max); err != nil {
			return err
		}
	}
	return validateIOMax(l.IOMax)
}

func checkRange(name string, v, lo, hi int64) error {
	if v == 0 || v >= lo && v <= hi {
		return nil
	}
	return fmt.Errorf("%s %d is out of range: take %d to %d, or %s", name, v, lo, hi, zeroMeansNoLimit)
}

func validateIOMax(list []IOMax) error {
	if len(list) > maxIOMaxDevices {
		return fmt.Errorf("IO limits for %d devices are too many: name at most %d", len(list), maxIOMaxDevices)
	}
	seen := make(map[[2]uint32]bool, len(list))
	for _, m := range list {
		if err := m.validate(); err != nil {
			return err
		}
		if k := [2]uint32{m.Major, m.Minor}; seen[k] {
			return fmt.Errorf("IO limit for device %s is given twice: merge the entries", m.device())
		} else {
			seen[k] = true
		}
	}
	return nil
}

func (m IOMax) validate() error {
	if m.Major == 0 && m.Minor == 0 {
		return fmt.Errorf("IO limit for device 0:0 names no block device: take a number from /proc/partitions")
	}
	if m.Major > 4095 || m.Minor > 1<<20-1 {
		return fmt.Errorf("IO limit for device %s is out of range: take a number from /proc/partitions", m.device())
	}
	for _, f := range m.fields() {
		what := fmt.Sprintf("IO limit %s of device %s", f.key, m.device())
		if err := checkRange(what, f.v, 1, f.max); err != nil {
			return err
		}
	}
	return nil
}

func (m IOMax) device() string { return fmt.Sprintf("%d:%d", m.Major, m.Minor) }

type ioField struct {
	key    string // in v2's io.max
	v1File string
	v      int64
	max    int64
}

func (m IOMax) fields() [4]ioField {
	return [4]ioField{
		{"rbps", "blkio.throttle.read_bps_device", m.ReadBytes, math.MaxInt64},
		{"wbps", "blkio.throttle.write_bps_device", m.WriteBytes, math.MaxInt64},
		{"riops", "blkio.throttle.read_iops_device", m.ReadOps, math.MaxUint32},
		{"wiops", "blkio.throttle.write_iops_device", m.WriteOps, math.MaxUint32},
	}
}
