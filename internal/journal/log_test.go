package journal

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// The log is bounded also where a reader of the owner's process is always under way.
func TestTheLogIsBoundedBesideReaders(t *testing.T) {
	t.Parallel()
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
	logBytes := func() int64 {
		info, err := os.Stat(filepath.Join(dir, DatabaseName+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for n := range 25 {
		appendBulk(t, j, fmt.Sprint("t", n), 100)
	}
	grown := logBytes()
	n := 0
	wait.Until(t, "the log begins anew", func() bool { // with the next commit
		n++
		appendBulk(t, j, fmt.Sprint("u", n), 3)
		return logBytes() <= emptyBytes
	})
	t.Logf("the log had %d MiB beside %d reads, and %d commits later it began anew", grown>>20, reads.Load(), n)
}

// Who appends faster than the disk writes waits for the disk: here names that are never the same have each commit change
// many pages.
func TestTheLogIsBoundedBesideAppends(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{Retention: Retention{MaxBytes: 8 << 20}})
	var all sync.WaitGroup
	most := make([]int64, 4)
	for n := range most {
		all.Go(func() {
			turn := fmt.Sprint("t", n)
			events := []Event{event(turn, 1, api.EventTurnStart)}
			for len(events) < 64*120 {
				e := event(turn, int64(len(events)+1), api.EventQueued)
				e.CallID, e.Tool = fmt.Sprint(len(events)), rand.Text()
				events = append(events, e)
			}
			for some := range slices.Chunk(events, 64) {
				mustAppend(t, j, some...)
				most[n] = max(most[n], j.logSize())
			}
		})
	}
	all.Wait()
	if most := slices.Max(most); most > 2*maxLogBytes+checkpointBytes { // all wait with the former, but for those under way
		t.Errorf("the log had %d MiB", most>>20)
	} else {
		t.Logf("the log had %d MiB at most", most>>20)
	}
}
