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
