package sandbox

import (
	"math"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

func TestStorageSizes(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name   string
		memory int64
		given  Storage
		want   Storage
	}{
		{"no limit", 0, Storage{}, Storage{128 * mib, 64 * mib, 16 * mib, 65536}},
		{"negative is not a limit", -1, Storage{}, Storage{128 * mib, 64 * mib, 16 * mib, 65536}},
		{"a limit", 256 * mib, Storage{}, Storage{64 * mib, 32 * mib, 8 * mib, 65536}},
		{"a large limit", 64 << 30, Storage{}, Storage{16 << 30, 8 << 30, 2 << 30, 65536}},
		{"given", 256 * mib, Storage{1, 2, 3, 4}, Storage{1, 2, 3, 4}},
		{"just half", 256 * mib, Storage{WorkspaceBytes: 100 * mib, TmpBytes: 20 * mib, ShmBytes: 8 * mib}, Storage{100 * mib, 20 * mib, 8 * mib, 65536}},
		{"given without a limit", 0, Storage{WorkspaceBytes: 1 << 40}, Storage{1 << 40, 64 * mib, 16 * mib, 65536}},
	} {
		if got, err := c.given.complete(c.memory, false); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
	for _, c := range []struct {
		name   string
		memory int64
		given  Storage
		part   string
	}{
		{"negative workspace", 0, Storage{WorkspaceBytes: -1}, "-1 is negative"},
		{"negative tmp", 256 * mib, Storage{TmpBytes: -5}, "-5 is negative"},
		{"negative beside positive", 0, Storage{WorkspaceBytes: 9, ShmBytes: -2}, "-2 is negative"},
		{"negative inodes", 0, Storage{WorkspaceInodes: -3}, "-3 is negative"},
		{"over half", 256 * mib, Storage{WorkspaceBytes: 100 * mib}, "more than half of the memory limit of 268435456"},
		{"one byte over", 200, Storage{50, 40, 11, 0}, "more than half"},
		{"a sum beyond the numbers", 256 * mib, Storage{WorkspaceBytes: math.MaxInt64, TmpBytes: math.MaxInt64, ShmBytes: 3}, "more than half"},
		{"the same without a limit", 0, Storage{WorkspaceBytes: math.MaxInt64, TmpBytes: math.MaxInt64}, "more than half"},
	} {
		_, err := c.given.complete(c.memory, false)
		wantError(t, err, c.part)
		if _, err := resolve(t, Policy{}).Plan(complete(true), Task{MemoryBytes: c.memory, Storage: c.given}); err == nil {
			t.Errorf("%s: planned", c.name)
		}
	}
}

func TestStorageInThePlan(t *testing.T) {
	p := plan(t, Policy{}, complete(true), Task{Storage: Storage{WorkspaceBytes: 1 << 20, TmpBytes: 2 << 20, ShmBytes: 3 << 20, WorkspaceInodes: 100}})
	want := map[string]wire.Mount{
		Workspace:  {Kind: wire.MountTmpfs, Target: Workspace, Mode: 0o755, Bytes: 1 << 20, Inodes: 100, Write: true},
		"/tmp":     {Kind: wire.MountTmpfs, Target: "/tmp", Mode: 0o1777, Bytes: 2 << 20, Inodes: 25, Write: true},
		"/dev/shm": {Kind: wire.MountTmpfs, Target: "/dev/shm", Mode: 0o1777, Bytes: 3 << 20, Inodes: 2, Write: true, NoExec: true},
		socketDir:  {Kind: wire.MountTmpfs, Target: socketDir, Mode: 0o700, Bytes: 64 << 10, Inodes: 2, Write: true, NoExec: true},
	}
	for _, m := range p.root.Mounts {
		if m.Kind == wire.MountTmpfs && m != want[m.Target] {
			t.Errorf("mount %+v, want %+v", m, want[m.Target])
		}
		delete(want, m.Target)
	}
	for target := range want {
		t.Errorf("no tmpfs at %s", target)
	}
}

func TestEnvironment(t *testing.T) {
	fixed := []string{"PATH=" + Path, "HOME=" + Workspace, "USER=tool", "LOGNAME=tool"}
	for _, c := range []struct {
		task Task
		more []string
	}{
		{Task{}, nil},
		{Task{CPUPercent: 1}, []string{"GOMAXPROCS=1"}},
		{Task{CPUPercent: 100}, []string{"GOMAXPROCS=1"}},
		{Task{CPUPercent: 101}, []string{"GOMAXPROCS=2"}},
		{Task{CPUPercent: 250, MemoryBytes: 1000}, []string{"GOMAXPROCS=3", "GOMEMLIMIT=900"}},
		{Task{MemoryBytes: math.MaxInt64}, []string{"GOMEMLIMIT=8301034833169298220"}},
	} {
		if got, want := plan(t, Policy{}, complete(true), c.task).Env(), slices.Concat(fixed, c.more); !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", c.task, got, want)
		}
	}
}

func TestFindings(t *testing.T) {
	f := complete(true).Without(FeatureLandlock)
	list := f.Findings()
	if len(list) != len(uses) {
		t.Fatalf("%d findings of %d features", len(list), len(uses))
	}
	for i, found := range list {
		if found.Feature != uses[i].feature || found.Use == "" || found.State != Yes && (found.Reason == "" || found.Remedy == "") {
			t.Errorf("finding %+v", found)
		}
	}
	if complete(true).find(FeatureLandlock).State != Yes {
		t.Error("Without changed what it was called on")
	}
	// Nothing tried is nothing had.
	for _, found := range (Features{}).Without(FeatureSeccomp).Findings() {
		if found.State == Yes || found.Reason == "" || found.Remedy == "" {
			t.Errorf("finding %+v of no host", found)
		}
	}
	if _, err := resolve(t, Policy{}).Plan(Features{}, Task{}); err == nil {
		t.Error("planned for no host")
	}
}
