package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// The log is bounded also where a reader of the owner's process is always under way.
func TestTheLogIsBoundedBesideReaders(t *testing.T) {
	t.Parallel()
	const pageBytes = 4 << 10
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{Retention: Retention{MaxBytes: 8 << 20}})
	reader, err := j.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var over atomic.Bool
	var reads atomic.Int64
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for !over.Load() {
				if _, err := reader.Turns(api.Filter{Limit: MaxLimit}); err != nil {
					t.Error(err)
					return
				}
				reads.Add(1)
			}
		})
	}
	defer readers.Wait()
	defer over.Store(true)
	var largest int64
	for n := range 100 {
		appendBulk(t, j, fmt.Sprint("t", n), 100)
		info, err := os.Stat(filepath.Join(dir, DatabaseName+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
	}
	t.Logf("the log had at most %d MiB beside %d reads", largest>>20, reads.Load())
	if largest > 4*maxLogPages*pageBytes {
		t.Errorf("the log has grown to %d bytes", largest)
	}
}
