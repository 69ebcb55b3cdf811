package cgroup

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

func TestSweepable(t *testing.T) {
	const own = "toolhost-7-0123456789abcdef"
	type kinds struct{ v1, v2 sweepKind }
	cases := map[string]kinds{
		own:                                    {},
		"toolhost-7-0123456789abcdee":          {sweepTools, sweepTools},
		"toolhost-4194304-ffffffffffffffff":    {sweepTools, sweepTools},
		"toolhost-7-0123456789abcdeF":          {},
		"toolhost-7-0123456789abcdef.scope":    {},
		"toolhost-proto-e2e":                   {},
		"toolhost-":                            {},
		"toolhost.service":                     {},
		"toolhost-supervisor-0123456789abcdef": {v2: sweepLeaf},
		"toolhost-supervisor":                  {},
		"supervisor":                           {},
		"supervisor-0123456789abcdef":          {},
		"process_api":                          {},
		"":                                     {},
	}
	for name, want := range cases {
		if got := (kinds{sweepable(name, own, 1), sweepable(name, own, 2)}); got != want {
			t.Errorf("sweepable(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestOwnerAlive(t *testing.T) {
	for err, want := range map[error]bool{
		unix.EWOULDBLOCK: true, unix.ESTALE: true, unix.EACCES: true,
		unix.ENOLCK: false, unix.EIO: false,
	} {
		if got := ownerAlive(pathError("flock", "x", err)); got != want {
			t.Errorf("ownerAlive(%v) = %v", err, got)
		}
	}
}

// sweptAway sweeps until nothing of name is left. Once is not always enough: what
// another toolhost of the machine is about to remove is left to it.
func sweptAway(t *testing.T, r *Root, name string) {
	t.Helper()
	var left []SweepLeft
	defer func() {
		if t.Failed() {
			t.Logf("the last sweep left %+v", left)
		}
	}()
	wait.Until(t, name+" is swept away", func() (done bool) {
		var err error
		if left, err = r.Sweep(); err != nil {
			t.Fatal(err)
		}
		return exists(t, r, name) == 0
	})
}

func exists(t *testing.T, r *Root, name string) (n int) {
	t.Helper()
	for _, h := range r.hierarchies() {
		if h.base.exists(name) {
			n++
		}
	}
	return n
}

func TestSweepTakesTheDeadAndLeavesTheLiving(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		live, dead := spawn(t, nil, "owner", r.Mode().String()), spawn(t, nil, "owner", r.Mode().String())
		livePid, liveName := live.line(), live.line()
		deadPid, deadName := dead.line(), dead.line()
		kill := func(pid string) { _ = syscall.Kill(number(pid), syscall.SIGKILL) }
		defer kill(livePid)
		foreign := "test-" + randomHex()
		if err := r.v2.base.mkdir(foreign, 0o755); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := r.v2.base.rmdir(foreign); err != nil {
				t.Error(err)
			}
		}()
		if err := dead.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = dead.wait()

		sweptAway(t, r, deadName)
		if err := syscall.Kill(number(deadPid), 0); err == nil && !isZombie(t, deadPid) {
			t.Errorf("the dead owner's process %s lives", deadPid)
		}
		if n := exists(t, r, liveName); n != len(r.hierarchies()) {
			t.Errorf("the live owner's directory is left in %d hierarchies", n)
		}
		if err := syscall.Kill(number(livePid), 0); err != nil {
			t.Errorf("the live owner's process: %v", err)
		}
		if exists(t, r, foreign) != 1 || exists(t, r, r.name) != len(r.hierarchies()) {
			t.Error("a directory is gone that is not a dead toolhost's")
		}

		_ = live.cmd.Process.Kill()
		_ = live.wait()
		sweptAway(t, r, liveName)
	})
}

func isZombie(t *testing.T, pid string) bool {
	t.Helper()
	d := &dir{unix.AT_FDCWD, ""}
	stat, err := d.read("/proc/" + pid + "/stat")
	_, state, _ := strings.Cut(stat, ") ")
	return err != nil || strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

// A directory whose owner hasn't locked it yet may be swept: the owner sees.
func TestLockRace(t *testing.T) {
	base, _ := newBase(t)
	const name = "toolhost-1-0123456789abcdef"
	if err := base.mkdir(name, 0o711); err != nil {
		t.Fatal(err)
	}
	d, err := base.sub(name)
	if err != nil {
		t.Fatal(err)
	}
	sweeper, err := lockedSub(base, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockedSub(base, name); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("second lock: %v", err)
	}
	if err := base.rmdir(name); err != nil {
		t.Fatal(err)
	}
	sweeper.close()
	d.close()
	if _, err := lockedSub(base, name); !errors.Is(err, unix.ENOENT) {
		t.Errorf("lock of a removed directory: %v", err)
	}
}
