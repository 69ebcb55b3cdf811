package cpus

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// counted returns a governor and the number of processors that it has set.
func counted() (g *governor, processors *int) {
	processors = new(8)
	return &governor{narrow: func() { *processors = 1 }, widen: func() { *processors = 8 }}, processors
}

func TestOneThingAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, processors := counted()
		want := func(n int, when string) {
			t.Helper()
			if synctest.Wait(); *processors != n {
				t.Errorf("%s: %d processors, want %d", when, *processors, n)
			}
		}
		time.Sleep(time.Hour)
		for range 3 {
			done := g.busy()
			want(1, "one call")
			time.Sleep(long - 1)
			done()
			done() // changes nothing
			want(1, "between calls")
		}
		first := g.busy()
		second := g.busy()
		want(8, "two calls")
		first()
		want(8, "the second of two")
		second()
		third := g.busy()
		want(8, "a call just behind two")
		third()
		time.Sleep(settled + 1)
		alone := g.busy()
		want(1, "a call some time behind two")
		time.Sleep(long)
		want(8, "a long call")
		alone()
		next := g.busy()
		want(8, "a call just behind a long one")
		next()
		time.Sleep(settled + 1)
		g.busy()()
		time.Sleep(time.Hour)
		want(1, "nothing to do")
	})
}

func TestAnAgeIsOfOneCallAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, processors := counted()
		time.Sleep(time.Hour)
		for range 100 { // the timers of those before say nothing of the next
			done := g.busy()
			time.Sleep(long * 2 / 3)
			done()
		}
		if synctest.Wait(); *processors != 1 {
			t.Errorf("%d processors, want 1", *processors)
		}
	})
}

func TestWithoutSpareNothingChanges(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	done := Busy()
	defer done()
	if now := runtime.GOMAXPROCS(0); now != before {
		t.Errorf("%d processors, %d before", now, before)
	}
}

func TestSpare(t *testing.T) {
	if runtime.NumCPU() == 1 {
		t.Skip("there is one processor anyway")
	}
	t.Setenv("GOMAXPROCS", "2")
	Spare()
	if process.widen != nil {
		t.Error("the environment's number does not stay")
	}
	t.Setenv("GOMAXPROCS", "")
	all := runtime.GOMAXPROCS(0)
	t.Cleanup(func() {
		runtime.SetDefaultGOMAXPROCS()
		process = governor{}
	})
	Spare()
	first := Busy()
	if now := runtime.GOMAXPROCS(0); now != 1 {
		t.Errorf("%d processors for one call, want 1", now)
	}
	second := Busy()
	if now := runtime.GOMAXPROCS(0); now != all {
		t.Errorf("%d processors for two calls, want %d", now, all)
	}
	second()
	first()
}
