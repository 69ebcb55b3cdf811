package cgroup

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// sweepAs sweeps base as a hierarchy of the given version.
func sweepAs(t *testing.T, base *dir, version int) {
	t.Helper()
	if left, err := (&Root{}).sweepHierarchy(&hierarchy{version: version, base: base, home: -1}); err != nil || len(left) > 0 {
		t.Errorf("sweep: %v, %+v", err, left)
	}
}

func mkdirs(t *testing.T, base *dir, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := base.mkdir(name, 0o711); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepLeavesLeavesOfOthers(t *testing.T) {
	base, _ := newBase(t)
	const old, held, foreign, ours = "supervisor", supervisorLeaf + "0123456789abcdef", supervisorLeaf + "0123456789abcdee", supervisorLeaf + "0123456789abcded"
	mkdirs(t, base, old, old+"-0123456789abcdef", held, foreign, ours)
	lock, err := lockedSub(base, held)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.close()
	if err := os.Chown(base.join(foreign), 65534, 65534); err != nil {
		t.Fatal(err)
	}

	sweepAs(t, base, 1)
	if !base.exists(ours) {
		t.Error("a leaf is swept in v1, where toolhost makes none")
	}
	sweepAs(t, base, 2)
	for _, name := range []string{old, old + "-0123456789abcdef", held, foreign} {
		if !base.exists(name) {
			t.Errorf("%s is swept", name)
		}
	}
	if base.exists(ours) {
		t.Error("an empty leaf of ours is left")
	}
}

func TestSweepLeavesALeafInUse(t *testing.T) {
	base, _ := newBase(t)
	c := spawn(t, nil, "idle").expect("ready")
	name := ""
	err := fillLeaf(base, func(leaf *dir) error {
		name = leaf.path[len(base.path)+1:]
		sweepAs(t, base, 2) // while nobody is in it
		return moveAll(leaf, []int{c.pid()})
	})
	if err != nil {
		t.Fatal(err)
	}
	sweepAs(t, base, 2)
	if err := unix.Kill(c.pid(), 0); err != nil || !base.exists(name) {
		t.Errorf("a leaf in use is swept: %v", err)
	}
	_ = c.cmd.Process.Kill()
	_ = c.wait()
	sweepAs(t, base, 2)
	if base.exists(name) {
		t.Error("a leaf that all have left is not swept")
	}
}

// Whoever removes a leaf before somebody is in it (a sweep before we could lock
// it, say) costs another one.
func TestFillLeafTriesAgain(t *testing.T) {
	base, _ := newBase(t)
	for name, prepare := range map[string]func(leaf *dir) error{
		"removed before its file is opened":  func(*dir) error { return unix.ENOENT },
		"removed before its file is written": func(*dir) error { return unix.ENODEV },
		"removed": func(leaf *dir) error {
			if err := base.rmdir(leaf.path[len(base.path)+1:]); err != nil {
				return err
			}
			return leaf.write("cgroup.procs", "0")
		},
	} {
		tries := 0
		err := fillLeaf(base, func(leaf *dir) error {
			if tries++; tries == 1 {
				return prepare(leaf)
			}
			return nil
		})
		if err != nil || tries != 2 {
			t.Errorf("%s: %v after %d tries", name, err, tries)
		}
	}
	tries := 0
	err := fillLeaf(base, func(*dir) error { tries++; return unix.EACCES })
	if !errors.Is(err, unix.EACCES) || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
	if names, err := base.names(true); err != nil || len(names) != 3 {
		t.Errorf("leaves %v, %v; want those three that were filled", names, err)
	}
}
