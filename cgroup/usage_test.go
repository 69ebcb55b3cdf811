package cgroup

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

func awaitOOM(t testing.TB, g *Group) {
	t.Helper()
	select {
	case <-g.OOM():
	case <-wait.Context(t).Done():
		t.Fatal("no OOM was told")
	}
}

func finish(t testing.TB, g *Group) Usage {
	t.Helper()
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	waitEmpty(t, g)
	return usage(t, g)
}

func TestOOMInChild(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "oom", Limits{MemoryBytes: 48 << 20, Pids: 64})
		spawn(t, g, "allocate", "200").expect("ready")
		awaitOOM(t, g)
		u := finish(t, g)
		if u.OOMEvents == 0 || u.AncestorOOMKills != 0 || u.MemoryPeakBytes < 40<<20 || u.MemoryPeakBytes > 49<<20 {
			t.Errorf("usage %+v", u)
		}
		select {
		case <-g.OOM():
			t.Error("told twice")
		default:
		}
	})
}

// Left alone, the kernel's own kill is counted too.
func TestOOMKillCounted(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "counted", Limits{MemoryBytes: 48 << 20, Pids: 64})
		spawn(t, g, "allocate", "200").expect("ready")
		waitEmpty(t, g)
		if u := usage(t, g); u.OOMKills == 0 || u.AncestorOOMKills != 0 {
			t.Errorf("usage %+v", u)
		}
		awaitOOM(t, g) // still there for who asks late
	})
}

func TestOOMInGrandchild(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "oom-kid", Limits{MemoryBytes: 64 << 20, Pids: 64})
		c := spawn(t, g, "allocate-in-kid", "200").expect("ready")
		awaitOOM(t, g)
		if r.limited[ctrlMemory].version == 1 {
			c.expect("kid: signal: killed") // the parent lives: killing all is our duty
		} else {
			waitEmpty(t, g) // memory.oom.group did
		}
		u := finish(t, g)
		if u.OOMKills == 0 || u.AncestorOOMKills != 0 {
			t.Errorf("usage %+v", u)
		}
	})
}

// What hits the total is told as an ancestor's, and only to the group whose
// member was killed.
func TestOOMOfAncestor(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		if err := r.Totals(Limits{MemoryBytes: 96 << 20}); err != nil {
			t.Fatal(err)
		}
		bystander := newGroup(t, r, "bystander", Limits{MemoryBytes: 64 << 20})
		spawn(t, bystander, "idle").expect("ready")
		g := newGroup(t, r, "greedy", Limits{MemoryBytes: 256 << 20})
		spawn(t, g, "allocate", "200").expect("ready")
		awaitOOM(t, g)
		if u := finish(t, g); u.AncestorOOMKills == 0 || u.OOMKills != 0 || u.OOMEvents != 0 {
			t.Errorf("usage %+v", u)
		}
		select {
		case <-bystander.OOM():
			t.Error("a bystander was told of another's OOM")
		default:
		}
		if u := finish(t, bystander); u.AncestorOOMKills != 0 || u.OOMKills != 0 || u.OOMEvents != 0 {
			t.Errorf("bystander's usage %+v", u)
		}
	})
}

func TestPidsBomb(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "bomb", Limits{Pids: 20})
		spawn(t, g, "bomb").expect("refused after")
		u := finish(t, g)
		// On v1 the room of the forking thread may still be there when it begins.
		room := int64(2 - r.limited[ctrlPids].version)
		if u.PidsLimitHits == 0 || u.AncestorPidsLimitHits != 0 || u.PidsPeak < 20 || u.PidsPeak > 20+room {
			t.Errorf("usage %+v", u)
		}
	})
}

func TestPidsBombUnderTotal(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		if err := r.Totals(Limits{Pids: 20}); err != nil {
			t.Fatal(err)
		}
		g := newGroup(t, r, "bomb", Limits{Pids: 60})
		spawn(t, g, "bomb").expect("refused after")
		u := finish(t, g)
		if u.PidsLimitHits != 0 || u.AncestorPidsLimitHits == 0 && !r.feat.exactPids {
			t.Errorf("usage %+v", u)
		}
		if err := r.Totals(Limits{}); err != nil {
			t.Fatal(err)
		}
		g = newGroup(t, r, "free", Limits{Pids: 60})
		spawn(t, g, "bomb").expect("refused after")
		if u := finish(t, g); u.PidsLimitHits == 0 {
			t.Errorf("usage after the total was lifted %+v", u)
		}
	})
}

// Without pids.peak the notice of a refused fork shows that the limit was
// reached.
func TestPidsBombWithoutPeak(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		need(t, "notices of pids.events (v1 sends none since Linux 6.11)", r.limited[ctrlPids].version == 2, inVM())
		r.feat.pidsPeak = false
		g := newGroup(t, r, "bomb", Limits{Pids: 20})
		spawn(t, g, "bomb").expect("refused after")
		for bound := wait.Context(t); g.pids.peak() == 0 && bound.Err() == nil; {
			if err := g.WaitEmpty(soon(t)); err == nil {
				t.Fatal("the bomb is gone")
			}
		}
		if u := finish(t, g); u.PidsLimitHits == 0 || u.PidsPeak != 20 {
			t.Errorf("usage %+v", u)
		}
	})
}

func TestCPUTime(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "cpu", Limits{})
		spawn(t, g, "spin", "1").expect("ready")
		var first, used time.Duration
		var err error
		for bound := wait.Context(t); used <= first || first == 0; {
			if used, err = g.CPU(); err != nil || bound.Err() != nil {
				t.Fatal(used, err, bound.Err())
			}
			if first == 0 {
				first = used
			}
		}
		if u := finish(t, g); u.CPUUser+u.CPUSystem < used {
			t.Errorf("CPU() was %v, usage %+v", used, u)
		}
	})
}

// Whose limit was hit is found of the whole life of a process; a call's part of it is never
// less than nothing.
func TestPidsLimitHitsOfACall(t *testing.T) {
	before := Usage{AncestorPidsLimitHits: 3}
	if u := (Usage{PidsLimitHits: 5}).Since(before); u.PidsLimitHits != 2 || u.AncestorPidsLimitHits != 0 {
		t.Errorf("%+v", u)
	}
	if u := (Usage{PidsLimitHits: 1, AncestorPidsLimitHits: 4}).Since(before); u.PidsLimitHits != 1 || u.AncestorPidsLimitHits != 1 {
		t.Errorf("%+v", u)
	}
}
