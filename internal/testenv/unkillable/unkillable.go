// Package unkillable makes processes that SIGKILL does not end, as one in state
// D is: for tests of what a kill does when it fails.
//
// A task in a frozen cgroup v1 freezer is not woken by SIGKILL (the v2 freezer
// ends it). Everything is undone when the test ends, in whatever way: a guard
// process, this binary again, sees its pipe close.
package unkillable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/vm/protocol"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Freeze makes the process unkillable until thaw, which then kills it if
// nobody else has; at the latest the test's end does both. The process must be
// a descendant that the test has started, and not the test itself. It needs
// root; where there is no v1 freezer the test is skipped, but in the VM it fails.
func Freeze(t testing.TB, pid int) (thaw func()) {
	t.Helper()
	f, err := newFreezer()
	if err != nil {
		missing := fmt.Sprintf("missing: a cgroup v1 freezer: %v", err)
		if os.Getenv(protocol.EnvVM) == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	thaw = sync.OnceFunc(func() {
		if err := f.release(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	if err := errors.Join(f.write("cgroup.procs", strconv.Itoa(pid)), f.write(stateFile, "FROZEN")); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the process is frozen", func() bool { return f.read(stateFile) == "FROZEN" })
	if !slices.Contains(strings.Fields(f.read("cgroup.procs")), strconv.Itoa(pid)) {
		t.Fatalf("process %d cannot be frozen: it has ended", pid)
	}
	return thaw
}

const stateFile = "freezer.state"

// freezer is one cgroup of the v1 freezer hierarchy.
type freezer struct {
	parent, dir *os.File
	name        string
	guard       *exec.Cmd
	lifeline    io.Closer
}

func newFreezer() (*freezer, error) {
	parent, err := ownFreezer()
	if err != nil {
		return nil, err
	}
	f := &freezer{parent: parent, name: "toolhost-unkillable-" + rand.Text()}
	if err := unix.Mkdirat(int(parent.Fd()), f.name, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make a cgroup in it: %w", err), parent.Close())
	}
	if f.dir, err = openDir(parent, f.name); err == nil {
		err = f.startGuard()
	}
	if err != nil {
		return nil, errors.Join(err, f.remove(), f.close())
	}
	return f, nil
}

// ownFreezer opens our own cgroup in the freezer's hierarchy, through a mount
// of it without a place: no mount table changes.
func ownFreezer() (*os.File, error) {
	fs, err := unix.Fsopen("cgroup", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fs)
	if err := errors.Join(unix.FsconfigSetFlag(fs, "freezer"), unix.FsconfigCreate(fs)); err != nil {
		return nil, os.NewSyscallError("fsconfig", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fsmount", err)
	}
	mount := os.NewFile(uintptr(fd), "freezer")
	defer mount.Close()
	return openDir(mount, "."+ownPath())
}

// ownPath is "/" where our place cannot be seen (cgroups(7)).
func ownPath() string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && strings.Contains(","+f[1]+",", ",freezer,") && !strings.HasPrefix(f[2], "/..") {
			return f[2]
		}
	}
	return "/"
}

func openDir(at *os.File, path string) (*os.File, error) {
	fd, err := unix.Openat(int(at.Fd()), path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the freezer %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (f *freezer) write(name, value string) error {
	fd, err := unix.Openat(int(f.dir.Fd()), name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(fd, []byte(value))
		err = errors.Join(err, unix.Close(fd))
	}
	if err != nil {
		return fmt.Errorf("cannot write %s to %s: %w", value, name, err)
	}
	return nil
}

func (f *freezer) read(name string) string {
	fd, err := unix.Openat(int(f.dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	n, _ := unix.Read(fd, buf)
	return strings.TrimSpace(string(buf[:max(n, 0)]))
}

func (f *freezer) remove() error {
	return os.NewSyscallError("rmdir", unix.Unlinkat(int(f.parent.Fd()), f.name, unix.AT_REMOVEDIR))
}

func (f *freezer) close() error { return errors.Join(f.parent.Close(), f.dir.Close()) }

// release has the guard undo everything, and waits for it.
func (f *freezer) release() error {
	_ = f.lifeline.Close()
	if err := f.guard.Wait(); err != nil {
		return fmt.Errorf("cannot undo the freezer %s: %w", f.name, err)
	}
	return f.close()
}

const guardVar = "TOOLHOST_UNKILLABLE_GUARD"

// init makes this binary the guard, before any of its tests.
func init() {
	if name := os.Getenv(guardVar); name != "" {
		f := &freezer{name: name, parent: os.NewFile(3, "parent"), dir: os.NewFile(4, "dir")}
		if err := f.watch(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func (f *freezer) startGuard() (err error) {
	f.guard = exec.Command("/proc/self/exe")
	f.guard.Env = []string{guardVar + "=" + f.name}
	f.guard.ExtraFiles = []*os.File{f.parent, f.dir}
	f.guard.Stderr = os.Stderr
	if f.lifeline, err = f.guard.StdinPipe(); err != nil {
		return err
	}
	return f.guard.Start()
}

// watch waits for the test's end, thaws, and kills what is left.
func (f *freezer) watch() error {
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := f.write(stateFile, "THAWED"); err != nil {
		return err
	}
	var err error
	for deadline := time.Now().Add(wait.Bound); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for line := range strings.FieldsSeq(f.read("cgroup.procs")) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 1 { // the victim: nothing else is ever in here
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if err = f.remove(); err == nil {
			return nil
		}
	}
	return err
}
