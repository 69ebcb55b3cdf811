package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// groupsOf counts in how many hierarchies a process is in the group.
func groupsOf(t *testing.T, pid int, g *Group) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "/"+g.root.name+"/"+g.leaf+"\n")
}

func TestBornInsideEveryHierarchy(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "born", Limits{MemoryBytes: 256 << 20, Pids: 64, CPUPercent: 100, CPUWeight: 50})
		c := spawn(t, g, "idle").expect("ready")
		if got, want := groupsOf(t, c.pid(), g), len(r.hierarchies()); got != want {
			t.Errorf("born in %d of %d hierarchies", got, want)
		}
		pids, err := g.Processes()
		if err != nil || len(pids) != 1 || pids[0] != c.pid() {
			t.Errorf("Processes() = %v, %v; want the child %d", pids, err, c.pid())
		}
		if got := groupsOf(t, os.Getpid(), g); got != 0 {
			t.Errorf("we are in the group in %d hierarchies", got)
		}
	})
}

func TestThreadsComeHome(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "home", Limits{Pids: 8})
		if err := g.Start(&syscall.SysProcAttr{}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		for _, h := range r.v1 {
			if text, err := h.tools.read(g.leaf + "/tasks"); err != nil || text != "" {
				t.Errorf("tasks of %v after Start: %q, %v", h.controllers, text, err)
			}
		}
	})
}

func TestStartReturnsErrorUnchanged(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "failing", Limits{Pids: 8})
		cause := errors.New("cause")
		if err := g.Start(&syscall.SysProcAttr{}, func() error { return cause }); err != cause {
			t.Errorf("Start() = %v", err)
		}
	})
}

// One process fits under a limit of one, though on v1 it is forked by a thread
// that counts too.
func TestPidsLimitOfOne(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "one", Limits{Pids: 1})
		cmd := roleCommand("exit")
		// The role's runtime can't start a thread and dies: to be born is enough.
		cmd.Stderr = nil
		c := spawnCommand(t, g, cmd)
		_ = c.wait()
		if text, err := r.limited[ctrlPids].tools.read(g.leaf + "/pids.max"); err != nil || text != "1\n" {
			t.Errorf("pids.max = %q, %v", text, err)
		}
	})
}

func TestWaitEmpty(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "wait", Limits{})
		if err := g.WaitEmpty(wait.Context(t)); err != nil {
			t.Fatalf("before the first birth: %v", err)
		}
		spawn(t, g, "idle").expect("ready")
		over, cancel := context.WithCancelCause(t.Context())
		cancel(fs.ErrInvalid)
		if err := g.WaitEmpty(over); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("WaitEmpty(cancelled) = %v", err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := g.WaitEmpty(wait.Context(t)); err != nil {
					t.Error(err)
				}
			})
		}
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if pids, err := g.Processes(); err != nil || len(pids) != 0 {
			t.Errorf("Processes() = %v, %v", pids, err)
		}
	})
}

func TestRemoveLeavesNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "remove", Limits{Pids: 20})
		c := spawn(t, g, "idle").expect("ready")
		if err := g.Remove(); !errors.Is(err, syscall.EBUSY) {
			t.Fatalf("Remove of a populated group = %v", err)
		}
		_ = c.cmd.Process.Kill()
		_ = c.wait()
		for range 2 {
			if err := g.Remove(); err != nil {
				t.Fatal(err)
			}
		}
		for _, h := range r.hierarchies() {
			if names, err := h.tools.names(true); err != nil || len(names) != 0 {
				t.Errorf("left in %s: %v, %v", h.tools.path, names, err)
			}
		}
		_, errProcesses := g.Processes()
		if err := g.WaitEmpty(wait.Context(t)); err != nil || g.Kill() != nil || g.Lift() != nil || errProcesses != ErrRemoved {
			t.Errorf("after Remove: WaitEmpty %v, Processes %v", err, errProcesses)
		}
	})
}

func TestNeverAdopts(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		newGroup(t, r, "twice", Limits{})
		if _, err := r.NewGroup("twice", Limits{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("second NewGroup = %v", err)
		}
		for _, name := range []string{"", ".", "../x", "a/b", "a b", strings.Repeat("x", 200)} {
			if g, err := r.NewGroup(name, Limits{}); err == nil && name != "." {
				t.Errorf("NewGroup(%q) made %s", name, g.Path())
			} else if err == nil {
				destroy(t, g) // c-. is an ordinary name
			}
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	needRoot(t)
	r, err := Open(wait.Context(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, errGroup := r.NewGroup("late", Limits{})
	_, errSweep := r.Sweep()
	if errGroup != ErrRemoved || errSweep != ErrRemoved || r.Totals(Limits{}) != ErrRemoved || r.Refresh() != ErrRemoved {
		t.Errorf("after Close: %v, %v", errGroup, errSweep)
	}
	if _, err := os.Stat(r.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", r.Path(), err)
	}
}

func TestConcurrentGroups(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 4 {
					liveOnce(t, r, fmt.Sprintf("many-%d-%d", i, j))
				}
			})
		}
		all.Wait()
	})
}

func liveOnce(t *testing.T, r *Root, name string) {
	g, err := r.NewGroup(name, Limits{MemoryBytes: 256 << 20, Pids: 64})
	if err != nil {
		t.Error(err)
		return
	}
	cmd := roleCommand("idle")
	if err := g.Start(cmd.SysProcAttr, cmd.Start); err != nil {
		t.Error(err)
	}
	var race sync.WaitGroup
	race.Go(func() { _, _ = g.Signal([]syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, nil) })
	race.Go(func() { _ = g.Kill() })
	race.Go(func() { _, _ = g.Usage() })
	if err := g.WaitEmpty(wait.Context(t)); err != nil {
		t.Error(err)
	}
	race.Wait()
	_ = cmd.Wait()
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}
