package cgroup

import (
	"testing"
	"time"
)

// What a tree did before its usage is counted is not in it: no CPU time, and no peak
// that it has come down from.
func TestUsageSinceBegin(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "begin", Limits{MemoryBytes: 128 << 20, Pids: 64})
		first := spawn(t, g, "allocate", "60").expect("ready").expect("allocated")
		if err := first.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = first.wait()
		b, err := g.Begin()
		if err != nil {
			t.Fatal(err)
		}
		u, err := g.Usage()
		if err != nil {
			t.Fatal(err)
		}
		since := u.SinceBegin(b)
		if since.MemoryPeakBytes > 30<<20 || since.PidsPeak >= u.PidsPeak && u.PidsPeak > 0 || since.CPUUser+since.CPUSystem > time.Millisecond {
			t.Errorf("nothing used %+v, of %+v", since, u)
		}
	})
}
