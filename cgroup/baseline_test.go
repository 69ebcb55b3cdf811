package cgroup

import "testing"

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
		// The end of the killed process, after it can be waited for, is charged late: up to a tick or two.
		late, all := since.CPUUser+since.CPUSystem, u.CPUUser+u.CPUSystem
		if since.MemoryPeakBytes > 30<<20 || since.PidsPeak >= u.PidsPeak && u.PidsPeak > 0 || late > all/2 {
			t.Errorf("nothing used %+v, of %+v", since, u)
		}
	})
}
