package supervisor

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Hosts that start at the same time sweep what dead ones have left, and never
// one another's folder, however new that is.
func TestRuntimeDirsOfHostsThatStartTogether(t *testing.T) {
	base := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				d, err := openRuntimeDir(base)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(filepath.Join(d.path, lockName)); err != nil {
					t.Error(err)
				}
				_ = d.lock.Close() // it dies
			}
		})
	}
	all.Wait()
}

// What is not a host's own folder stays, though nobody holds the lock in it: it may be that
// of a worker which is about to be started again.
func TestRuntimeDirsOfOthersStay(t *testing.T) {
	base := t.TempDir()
	for name, stays := range map[string]bool{"worker-w1": true, "history": true, "h1x": true, "h4711": false} {
		path := filepath.Join(base, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		lock, err := lockDir(path)
		if err != nil {
			t.Fatal(err)
		}
		_ = lock.Close()
		sweepRuntimeDirs(base)
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
