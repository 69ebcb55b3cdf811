package cgroup

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

func TestNoneTakesNoLimits(t *testing.T) {
	r := None()
	var missing *ControllerError
	if _, err := r.NewGroup("a", Limits{Pids: 8}); !errors.As(err, &missing) {
		t.Errorf("a limit that nothing enforces: %v", err)
	}
	if err := r.Totals(Limits{MemoryBytes: 1 << 30}); !errors.As(err, &missing) {
		t.Errorf("a total that nothing enforces: %v", err)
	}
	if r.Mode().String() != "none" || len(r.Controllers()) != 0 {
		t.Errorf("mode %v with controllers %v", r.Mode(), r.Controllers())
	}
}

// Without cgroups a group is the tree of its leader: all of it, nobody else, and
// nothing once the leader has ended.
func TestNoneSignalsTheTree(t *testing.T) {
	r := None()
	defer r.Close()
	g, err := r.NewGroup("tree", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if pids, err := g.Processes(); err != nil || len(pids) != 0 {
		t.Errorf("before birth: %v, %v", pids, err)
	}
	cmd := roleCommand("tree", "2")
	if err := g.Fork(func(dir *os.File, enter, leave []*os.File) error {
		if dir != nil || enter != nil || leave != nil {
			t.Error("there are cgroups to be born into")
		}
		return cmd.Start()
	}); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	g.Lead(cmd.Process.Pid)
	var all []int
	wait.Until(t, "the tree is complete", func() bool {
		all, err = g.Processes()
		return err == nil && len(all) == 3
	})
	if all[0] != cmd.Process.Pid || slices.Contains(all, os.Getpid()) {
		t.Errorf("members %v", all)
	}
	signalled, err := g.Signal([]syscall.Signal{syscall.SIGKILL}, func(pid int) bool { return pid == all[0] })
	if err != nil || len(signalled) != 2 {
		t.Errorf("signalled %v of %v: %v", signalled, all, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if pids, err := g.Processes(); err != nil || len(pids) != 0 {
		t.Errorf("after the leader: %v, %v", pids, err)
	}
	if err := errors.Join(g.Kill(), g.Lift(), g.Boost(), g.WaitEmpty(t.Context()), g.Remove()); err != nil {
		t.Error(err)
	}
	if u, err := g.Usage(); err != nil || u != (Usage{}) {
		t.Errorf("usage %+v, %v", u, err)
	}
}

func TestParseStat(t *testing.T) {
	const rest = " 7 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
	for text, want := range map[string]process{
		"12 (sleep) S" + rest:     {7, "4711"},
		"12 (a) S 1 (b) R" + rest: {7, "4711"},
		"12 (sleep) Z" + rest:     {},
		"12 (sleep) S 7":          {},
		"":                        {},
	} {
		if got, _ := parseStat(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
