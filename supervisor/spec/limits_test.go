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
