package spec

import (
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sandbox"
)

// Limits become bounds once: what is unlimited is 0 there, what a call leaves out is
// its supervisor's, and the launcher's own tasks come on top.
func TestBounds(t *testing.T) {
	b, err := Limits{MemoryBytes: Unlimited, Pids: 10, OutputBytes: 7}.Over(DefaultLimits()).Bounds()
	if err != nil {
		t.Fatal(err)
	}
	if b.MemoryBytes != 0 || b.Pids != 10 || b.CPUPercent != 100 || b.OutputBytes != 7 || b.SpillBytes != 64<<20 {
		t.Errorf("%+v", b)
	}
	if g := b.Group(); g.MemoryBytes != 0 || g.Pids != 10+sandbox.LauncherTasks {
		t.Errorf("group %+v", g)
	}
	if a := b.Applied(); a.MemoryBytes != 0 || a.Pids != 10 {
		t.Errorf("applied %+v", a)
	}
}

// What is wrong is named as its user has written it, and with what to do.
func TestWrongLimits(t *testing.T) {
	for want, l := range map[string]Limits{
		"limit cpuTime: -1000000000 is negative":    {CPUTime: -time.Second},
		"limit output: 268435457 bytes would be":    {OutputBytes: maxKeptBytes + 1},
		"memory limit 1048576 is too small":         {MemoryBytes: 1 << 20},
		"pids limit -1 is out of range: take 1 to":  {Pids: -1},
		"or infinity for no limit":                  {CPUPercent: -5},
		"memory limit -1 is out of range: take 419": {MemoryBytes: -1},
	} {
		err := l.Validate()
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
	if err := (Limits{}).Validate(); err != nil {
		t.Error(err)
	}
}

// Limits within others only tighten, and what is stored has its place in less memory.
func TestWithin(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ own, want Limits }{
		{Limits{}, Limits{MemoryBytes: 256 * mib}},
		{Limits{MemoryBytes: 128 * mib, TmpBytes: 9 * mib}, Limits{MemoryBytes: 128 * mib, TmpBytes: 9 * mib}},
		{Limits{MemoryBytes: 1024 * mib, WorkspaceBytes: 80 * mib}, Limits{MemoryBytes: 256 * mib, WorkspaceBytes: 80 * mib}},
		{Limits{MemoryBytes: 1024 * mib, WorkspaceBytes: 200 * mib}, Limits{MemoryBytes: 256 * mib, WorkspaceBytes: 64 * mib}},
		{Limits{MemoryBytes: 1024 * mib, WorkspaceBytes: 9 * mib, TmpBytes: 400 * mib}, Limits{MemoryBytes: 256 * mib, WorkspaceBytes: 9 * mib, TmpBytes: 32 * mib}},
		{Limits{MemoryBytes: Unlimited, WorkspaceBytes: 1 << 40}, Limits{MemoryBytes: 256 * mib, WorkspaceBytes: 64 * mib}},
	} {
		got := c.own.Within(Limits{MemoryBytes: 256 * mib}, false)
		if got.MemoryBytes != c.want.MemoryBytes || got.WorkspaceBytes != c.want.WorkspaceBytes || got.TmpBytes != c.want.TmpBytes {
			t.Errorf("%+v is %+v, want %+v", c.own, got, c.want)
		}
	}
	if got := (Limits{MemoryBytes: 1024 * mib, WorkspaceBytes: 200 * mib}).Within(Limits{Pids: 5}, false); got.WorkspaceBytes != 200*mib {
		t.Errorf("%+v", got)
	}
	// A workspace that persists takes none of the memory.
	data := Limits{MemoryBytes: 1024 * mib, TmpBytes: 400 * mib}
	for bound, want := range map[int64]int64{2048 * mib: 400 * mib, 1024 * mib: 400 * mib, 512 * mib: 64 * mib} {
		if got := data.Within(Limits{MemoryBytes: bound}, true).TmpBytes; got != want {
			t.Errorf("within %d bytes of memory /tmp has %d, want %d", bound, got, want)
		}
	}
}
