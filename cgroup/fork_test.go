package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Fork is how a process other than ours, the zygote, forks into a group.

func TestBornHandsOverEveryHierarchy(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "files", Limits{Pids: 8})
		var files []*os.File
		err := g.Fork(func(dir *os.File, enter, leave []*os.File) error {
			if len(enter) != len(r.v1) || len(leave) > len(enter) {
				t.Errorf("%d files to enter and %d to leave for %d v1 hierarchies", len(enter), len(leave), len(r.v1))
			}
			if info, err := dir.Stat(); err != nil || !info.IsDir() {
				t.Errorf("dir: %v, %v", info, err)
			}
			files = append(append(append(files, dir), enter...), leave...)
			for _, f := range files {
				if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
					t.Errorf("descriptor flags %#x, %v: not closed on exec", flags, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		wantClosed(t, files)
	})
}

func wantClosed(t *testing.T, files []*os.File) {
	t.Helper()
	for _, f := range files {
		if _, err := f.Stat(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("a file is still open: %v", err)
		}
	}
}

func TestBornRaisesThePidsLimitOnlyMeanwhile(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		for name, limits := range map[string]Limits{"limited": {Pids: 5}, "unlimited": {}} {
			g := newGroup(t, r, name, limits)
			during := map[bool]string{true: "5\n", false: "max\n"}[limits.Pids > 0]
			after := during
			if limits.Pids > 0 && r.limited[ctrlPids].version == 1 {
				during = "6\n"
			}
			cause := errors.New("cause")
			for _, want := range []error{nil, cause} {
				err := g.Fork(func(*os.File, []*os.File, []*os.File) error {
					wantPids(t, r, g, during)
					return want
				})
				if err != want {
					t.Errorf("Fork() = %v, want birth's own %v", err, want)
				}
				wantPids(t, r, g, after)
			}
		}
	})
}

func wantPids(t *testing.T, r *Root, g *Group, want string) {
	t.Helper()
	if text, err := r.limited[ctrlPids].tools.read(g.leaf + "/pids.max"); err != nil || text != want {
		t.Errorf("pids.max = %q, %v; want %q", text, err, want)
	}
}

func TestBornClosesItsFilesAfterAnError(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "failing", Limits{Pids: 8})
		cause := errors.New("cause")
		var files []*os.File
		err := g.Fork(func(dir *os.File, enter, leave []*os.File) error {
			files = append(append(append(files, dir), enter...), leave...)
			return cause
		})
		if err != cause {
			t.Errorf("Fork() = %v", err)
		}
		wantClosed(t, files)
	})
}

func TestBornAfterRemove(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "removed", Limits{Pids: 8})
		if err := g.Remove(); err != nil {
			t.Fatal(err)
		}
		err := g.Fork(func(*os.File, []*os.File, []*os.File) error {
			t.Error("birth was called")
			return nil
		})
		if err != ErrRemoved {
			t.Errorf("Fork() = %v", err)
		}
	})
}

// A child that only the dead group's directory is given to is never born, or
// dies at birth: nothing runs in a group that was killed.
func TestBornIntoAKilledGroup(t *testing.T) {
	eachMode(t, func(t *testing.T, r *Root) {
		g := newGroup(t, r, "killed", Limits{Pids: 64})
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd := roleCommand("idle")
		err := g.Fork(func(dir *os.File, _, _ []*os.File) error {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
			return cmd.Start()
		})
		if err == nil { // Linux before 6.18 may bear it
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		runtime.KeepAlive(g)
	})
}
