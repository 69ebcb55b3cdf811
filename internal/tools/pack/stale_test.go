package pack

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// packedSample writes the sample's pack as a folder.
func packedSample(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pack")
	c := mustCollect(t, Spec{Source: tree(t, sample), Tools: described()})
	if err := c.Dir(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustOpen(t *testing.T, path string) *Opened {
	t.Helper()
	o, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// What a process that died has left is removed by the next one that opens a
// pack; what a living one has is not, nor what is not a copy of ours.
func TestStaleCopies(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	from := packedSample(t)
	dead, living := mustOpen(t, from), mustOpen(t, from)
	if err := dead.lock.Close(); err != nil { // as a process's end does
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	link, other := filepath.Join(temporary, copyPrefix+"link"), filepath.Join(temporary, "toolhost-other")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	next := mustOpen(t, from)
	if exists(dead.Dir) {
		t.Error("the dead one's copy is there")
	}
	for _, path := range []string{living.Binary, next.Binary, link, other, elsewhere} {
		if !exists(path) {
			t.Errorf("%s is gone", path)
		}
	}
	for _, o := range []*Opened{living, next} {
		if err := o.Close(); err != nil || exists(o.Dir) {
			t.Errorf("closed: %v, there %t", err, exists(o.Dir))
		}
	}
}

func TestAnotherUsersCopiesStay(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving a folder to another user needs root")
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	others := filepath.Join(temporary, copyPrefix+"1")
	if err := os.Mkdir(others, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(others, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, packedSample(t)).Close(); err != nil || !exists(others) {
		t.Errorf("%v, there %t", err, exists(others))
	}
}

// Those who open at the same time never remove one another's copies, however
// new.
func TestOpenersBesideOneAnother(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	from := packedSample(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				o, err := Open(from)
				if err != nil {
					t.Error(err)
					return
				}
				if !exists(o.Binary) {
					t.Errorf("%s is gone", o.Binary)
				}
				if err := o.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	entries, err := os.ReadDir(temporary)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), copyPrefix) {
			t.Errorf("%s is left", entry.Name())
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// A remover that was stopped in the middle is not waited for.
func TestANewFolderWaitsForNoRemover(t *testing.T) {
	dir := t.TempDir()
	remover, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer remover.Close()
	if err := flock(remover, syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if lock, err := lockNew(dir); lock != nil || err != nil {
		t.Errorf("lock %v, %v", lock, err)
	}
}
