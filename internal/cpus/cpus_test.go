package cpus

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// played is a process whose processors and CPU time are a test's.
type played struct {
	governor
	t          *testing.T
	processors int
	cpu        time.Duration
}

func play(t *testing.T) *played {
	p := &played{t: t, processors: 8}
	p.governor.used = func() time.Duration { return p.cpu }
	p.narrow, p.widen = func() { p.processors = 1 }, func() { p.processors = 8 }
	return p
}

// works has things begin and end for a second, one each millisecond, and use so much of a
// processor.
func (p *played) works(share float64) {
	for range 1000 {
		p.changes(1)
		time.Sleep(time.Millisecond)
		p.mu.Lock()
		p.cpu += time.Duration(share * float64(time.Millisecond))
		p.mu.Unlock()
		p.changes(-1)
	}
}

func (p *played) has(processors int, when string) {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.processors != processors {
		p.t.Errorf("%s: %d processors, want %d", when, p.processors, processors)
	}
}

func TestOneIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t)
		p.has(8, "before anything")
		for _, step := range []struct {
			share float64
			want  int
		}{{0.1, 1}, {0.8, 1}, {1.5, 8}, {0.8, 8}, {0.3, 1}} {
			p.works(step.share)
			p.has(step.want, "a while of work")
		}
		time.Sleep(time.Hour)
		p.has(1, "nothing to do")
	})
}

func TestWhatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t)
		p.changes(1)
		time.Sleep(quiet - 1)
		p.has(1, "a call")
		time.Sleep(time.Nanosecond)
		p.has(8, "a long call")
		p.changes(1)
		p.has(1, "another one beside it")
		p.changes(-1)
		time.Sleep(quiet)
		p.has(8, "the long one again")
		p.changes(-1)
		p.works(0.1)
		p.has(1, "behind it")
	})
}

func TestMuchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t)
		p.works(0.1)
		for range few {
			p.changes(1)
		}
		p.works(0.1)
		p.has(8, "more at once than few")
		p.changes(-1)
		p.works(0.1)
		p.has(1, "few at once")
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
	all := runtime.GOMAXPROCS(0)
	if all == 1 {
		t.Skip("there is one processor anyway")
	}
	t.Setenv("GOMAXPROCS", "2")
	Spare()
	if process.widen != nil {
		t.Error("the environment's number does not stay")
	}
	t.Setenv("GOMAXPROCS", "")
	t.Cleanup(func() {
		runtime.SetDefaultGOMAXPROCS()
		process = governor{}
	})
	Spare()
	done := Busy()
	if now := runtime.GOMAXPROCS(0); now != 1 {
		t.Errorf("%d processors for a call, want 1", now)
	}
	process.isQuiet()
	if now := runtime.GOMAXPROCS(0); now != all {
		t.Errorf("%d processors for a long call, want %d", now, all)
	}
	done()
	done() // changes nothing
	if process.doing != 0 {
		t.Errorf("%d under way", process.doing)
	}
}

// Of all threads the monitor alone wakes up while a goroutine computes.
func TestTheMonitorsSlackIsSet(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("to set another thread's slack takes CAP_SYS_NICE")
	}
	if monitor() == nil {
		t.Fatal("the monitor's slack cannot be set")
	}
	thread := filepath.Base(filepath.Dir(monitor().Name()))
	switches := func() (n int) {
		text, err := os.ReadFile("/proc/self/task/" + thread + "/status")
		if err != nil {
			t.Fatal(err)
		}
		_, count, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		if _, err := fmt.Sscan(count, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for before, start := switches(), time.Now(); switches() < before+20; {
		if time.Since(start) > time.Minute {
			t.Fatal("the thread sleeps while others run, so it is not the monitor")
		}
	}
	file := "/proc/" + thread + "/timerslack_ns"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []struct{ slack, want string }{{longSlack, longSlack}, {usualSlack, strings.TrimSpace(string(before))}} {
		slacken(set.slack)
		if got, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(got)) != set.want {
			t.Errorf("the slack is %s (%v), want %s", got, err, set.want)
		}
	}
}
