package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/unkillable"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// crowd is how many processes a kill must cope with; fewer where each costs
// emulation.
func crowd() int {
	if testing.Short() {
		return 50
	}
	return 200
}

func waitEmpty(t testing.TB, g *Group) {
	t.Helper()
	if err := g.WaitEmpty(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	if pids, err := g.Processes(); err != nil || len(pids) != 0 {
		t.Fatalf("survivors %v, %v", pids, err)
	}
}

func TestKillMixedSessionsAndStopped(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		n := crowd()
		g := newGroup(t, r, "crowd", Limits{})
		spawn(t, g, "tree", itoa(int64(n))).expect("ready")
		if pids, err := g.Processes(); err != nil || len(pids) != n+1 {
			t.Fatalf("%d processes, %v; want %d", len(pids), err, n+1)
		}
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		waitEmpty(t, g)
	})
}

func TestKillForkTreadmill(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "treadmill", Limits{Pids: 64})
		spawn(t, g, "treadmill", "20").expect("ready")
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		waitEmpty(t, g)
	})
}

func TestKillFrozen(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "frozen", Limits{})
		spawn(t, g, "tree", "5").expect("ready")
		if err := g.dir.write("cgroup.freeze", "1"); err != nil {
			t.Fatal(err)
		}
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		waitEmpty(t, g)
	})
}

// Of a tree with one process that cannot be killed all others die, the group
// tells of the one, and all can be done again when it is free.
func TestKillUnkillable(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "unkillable", Limits{Pids: 64})
		spawn(t, g, "tree", "5").expect("ready")
		stuck := spawn(t, g, "idle").expect("ready")
		thaw := unkillable.Freeze(t, stuck.pid())
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the others are dead", func() bool {
			pids, err := g.Processes()
			return err == nil && slices.Equal(pids, []int{stuck.pid()})
		})
		if err := g.WaitEmpty(soon(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitEmpty() = %v", err)
		}
		if err := g.Remove(); !errors.Is(err, unix.EBUSY) {
			t.Errorf("Remove() = %v", err)
		}
		thaw()
		_ = stuck.wait()
		if err := g.Remove(); err != nil {
			t.Errorf("Remove() after its end = %v", err)
		}
	})
}

func TestKillFileKills(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "lifeline", Limits{})
		f, err := g.KillFile()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor flags %#x, %v: not close-on-exec", flags, err)
		}
		spawn(t, g, "tree", "5").expect("ready")
		if _, err := f.WriteString("1"); err != nil {
			t.Fatal(err)
		}
		waitEmpty(t, g)
	})
}

// A quota of 2% would delay the deaths by seconds; lifted, nothing holds them.
func TestLiftThenKill(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "slow", Limits{CPUPercent: 2, Pids: 100})
		// In an emulated VM a start under such a quota takes longer than any
		// bound: the quota comes after it.
		if err := g.Lift(); err != nil {
			t.Fatal(err)
		}
		spawn(t, g, "spin", "4").expect("ready")
		writes, err := r.layout.plan(g.limits)
		if err == nil {
			err = r.apply(g.leaf+"/", writes)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Lift(); err != nil {
			t.Fatal(err)
		}
		file, want := "cpu.max", "max 100000\n"
		if r.limited[ctrlCPU].version == 1 {
			file, want = fileQuotaV1, "-1\n"
		}
		if got, err := g.read(r.limited[ctrlCPU], file); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", file, got, err, want)
		}
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		waitEmpty(t, g)
	})
}

// Births after a kill end at once, or not in the group: either way the group
// is used up.
func TestUsedOnce(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "used", Limits{})
		spawn(t, g, "idle").expect("ready")
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		waitEmpty(t, g)
	})
}

func TestSignal(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "signal", Limits{})
		polite := spawn(t, g, "polite").expect("ready")
		stopped := spawn(t, g, "polite").expect("ready")
		stubborn := spawn(t, g, "stubborn").expect("ready")
		skipped := spawn(t, g, "polite").expect("ready")
		outside := spawn(t, nil, "polite").expect("ready")
		if err := stopped.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		got, err := g.Signal([]syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, func(pid int) bool { return pid == skipped.pid() })
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		want := []int{polite.pid(), stopped.pid(), stubborn.pid()}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("signalled %v, want %v", got, want)
		}
		polite.expect("terminated")
		stopped.expect("terminated")
		for _, c := range []*child{stubborn, skipped, outside} {
			if err := c.cmd.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("a process is gone that should not: %v", err)
			}
		}
	})
}

func TestSignalReachesACrowd(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		n := crowd()
		g := newGroup(t, r, "many", Limits{})
		c := spawn(t, g, "tree", itoa(int64(n))).expect("ready")
		before := openDescriptors(t)
		got, err := g.Signal([]syscall.Signal{syscall.SIGCONT}, func(pid int) bool { return pid == c.pid() })
		if err != nil || len(got) != n {
			t.Errorf("signalled %d of %d, %v", len(got), n, err)
		}
		if after := openDescriptors(t); after > before {
			t.Errorf("%d descriptors open, %d before", after, before)
		}
	})
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// Living leaves no descriptor behind, whatever happened in the group.
func TestNoDescriptorLeak(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		before := -1
		for i := range 5 {
			g, err := r.NewGroup(fmt.Sprintf("fds-%d", i), Limits{MemoryBytes: 64 << 20, Pids: 10})
			if err != nil {
				t.Fatal(err)
			}
			c := spawn(t, g, "idle").expect("ready")
			_, _ = g.Signal([]syscall.Signal{syscall.SIGCONT}, nil)
			destroy(t, g)
			_ = c.wait()
			if n := cgroupDescriptors(t); before >= 0 && n > before {
				t.Fatalf("%d descriptors after group %d, %d before", n, i, before)
			} else {
				before = n
			}
		}
	})
}

func cgroupDescriptors(t *testing.T) int {
	t.Helper()
	n := 0
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range names {
		target, _ := os.Readlink("/proc/self/fd/" + f.Name())
		if strings.Contains(target, toolsPrefix) || strings.Contains(target, "eventfd") || strings.Contains(target, "pidfd") {
			n++
		}
	}
	return n
}
