package cgroup

import (
	"math"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	disk := IOMax{Major: 254, ReadBytes: 1 << 20}
	cases := []struct {
		name string
		l    Limits
		want string // in the error, "" for none
	}{
		{"zero", Limits{}, ""},
		{"usual", Limits{MemoryBytes: 512 << 20, Pids: 64, CPUPercent: 200, CPUWeight: 100, IOWeight: 100, IOMax: []IOMax{disk}}, ""},
		{"largest", Limits{MemoryBytes: MaxMemoryBytes, Pids: MaxPids, CPUPercent: MaxCPUPercent, CPUWeight: 10000, IOWeight: 10000}, ""},
		{"smallest", Limits{MemoryBytes: MinMemoryBytes, Pids: 1, CPUPercent: 1, CPUWeight: 1, IOWeight: 1}, ""},
		{"negative memory", Limits{MemoryBytes: -1}, "memory limit -1"},
		{"tiny memory", Limits{MemoryBytes: 1}, "memory limit 1"},
		{"overflowing memory", Limits{MemoryBytes: math.MaxInt64}, "memory limit 9223372036854775807"},
		{"negative pids", Limits{Pids: -5}, "pids limit -5"},
		{"overflowing pids", Limits{Pids: math.MaxInt64}, "pids limit"},
		{"negative cpu", Limits{CPUPercent: -100}, "CPU percent -100"},
		{"overflowing cpu", Limits{CPUPercent: math.MaxInt64 / 2}, "CPU percent"},
		{"heavy", Limits{CPUWeight: 10001}, "CPU weight 10001"},
		{"io heavy", Limits{IOWeight: -1}, "IO weight -1"},
		{"no device", Limits{IOMax: []IOMax{{ReadBytes: 1}}}, "device 0:0"},
		{"device too big", Limits{IOMax: []IOMax{{Major: 5000, ReadBytes: 1}}}, "device 5000:0"},
		{"same device", Limits{IOMax: []IOMax{disk, disk}}, "254:0 is given twice"},
		{"negative rate", Limits{IOMax: []IOMax{{Major: 8, WriteBytes: -1}}}, "wbps of device 8:0 -1"},
		{"too many operations", Limits{IOMax: []IOMax{{Major: 8, ReadOps: 1 << 32}}}, "riops of device 8:0 4294967296"},
		{"too many devices", Limits{IOMax: make([]IOMax, 65)}, "65 devices"},
	}
	for _, c := range cases {
		err := c.l.Validate()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		case err != nil && (strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), ": ")):
			t.Errorf("%s: %q is not one line with a remedy", c.name, err)
		}
	}
}

// What Validate accepts never overflows on its way to the kernel.
func FuzzPlan(f *testing.F) {
	f.Add(int64(1<<30), int64(64), int64(100), int64(100), int64(100), uint32(8), int64(1))
	f.Add(int64(MaxMemoryBytes), int64(MaxPids), int64(MaxCPUPercent), int64(maxWeight), int64(maxWeight), uint32(4095), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, mem, pids, cpu, weight, ioWeight int64, major uint32, rate int64) {
		l := Limits{MemoryBytes: mem, Pids: pids, CPUPercent: cpu, CPUWeight: weight, IOWeight: ioWeight, IOMax: []IOMax{{Major: major, ReadBytes: rate}}}
		if l.Validate() != nil {
			return
		}
		for _, lay := range []layout{fullV1, fullV2} {
			writes, err := lay.plan(l)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range writes {
				if w.value == "" || strings.Contains(w.value, "-") || !lay[w.controller].has(w.file) {
					t.Errorf("write %+v for %+v", w, l)
				}
			}
			lay.undo(l, allControllers...)
		}
	})
}
