package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A copy can be executed at once, also while this process forks all the time.
func TestCopyIsNeverBusy(t *testing.T) {
	s := open(t, t.TempDir(), 0)
	whileForking(t, func() {
		for i := range 20 {
			content := fmt.Sprintf("#!/bin/sh\n# %d %s\nexit 0\n", i, strings.Repeat("#", chunkBytes))
			entry := s.add(t, writeTool(t, content), content)
			if err := exec.CommandContext(t.Context(), entry.Path).Run(); err != nil {
				t.Errorf("copy %d: %v", i, err)
			}
		}
	})
}

// Nor is what write has written, without the time that fsync takes.
func TestWrittenFileIsNeverBusy(t *testing.T) {
	dir, script := t.TempDir(), []byte("#!/bin/true\n"+strings.Repeat("#", 64<<10))
	whileForking(t, func() {
		for i := range 150 {
			path := filepath.Join(dir, strconv.Itoa(i))
			if err := errors.Join(write(path, os.O_CREATE|os.O_EXCL, script), os.Chmod(path, entryMode)); err != nil {
				t.Fatal(err)
			}
			if err := exec.CommandContext(t.Context(), path).Run(); err != nil {
				t.Errorf("file %d: %v", i, err)
			}
		}
	})
}

// whileForking runs f while others fork. Children in a new user namespace are
// the worst: the parent does not wait for their exec under the lock.
func whileForking(t *testing.T, f func()) {
	t.Helper()
	stop := make(chan struct{})
	var forkers sync.WaitGroup
	defer forkers.Wait()
	defer close(stop)
	for i := range 4 {
		forkers.Go(func() { forkUntil(t, stop, i%2 == 0) })
	}
	f()
}

func forkUntil(t *testing.T, stop <-chan struct{}, userNamespace bool) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		cmd := exec.CommandContext(t.Context(), "/bin/true")
		if userNamespace {
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
			}
		}
		if err := cmd.Run(); err != nil && !userNamespace {
			t.Error(err)
			return
		}
	}
}

// A copy of a real program runs.
func TestCopyRuns(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	entry, err := open(t, t.TempDir(), 0).Add(self)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "tool")
	cmd.Path = entry.Path
	run(t, cmd)
}

func BenchmarkAddKnown(b *testing.B) {
	s, err := Open(b.TempDir(), 0)
	if err != nil {
		b.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	s.now = func() time.Time { return time.Now().Add(ahead) }
	for b.Loop() {
		if _, err := s.Add(self); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAddNew(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(self)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		s, err := Open(b.TempDir(), 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Add(self); err != nil {
			b.Fatal(err)
		}
	}
}
