package journal

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Close does not take the database from an Append that writes the log to the file before it
// commits: it waits for that.
func TestCloseWaitsForTheLogOfAnAppend(t *testing.T) {
	t.Parallel()
	j := mustOpen(t, t.TempDir(), Options{})
	mustAppend(t, j, wholeTurn("t", "shell", "ok")...)
	j.logMu.Lock() // as boundLog does
	unlock := sync.OnceFunc(j.logMu.Unlock)
	defer unlock()
	closed := make(chan error, 1)
	go func() { closed <- j.Close() }()
	wait.Until(t, "Close waits, or is over", func() bool { return len(closed) > 0 || finishWaits() })
	if len(closed) > 0 {
		t.Fatal("Close has not waited")
	}
	if err := j.checkpointLog(); err != nil {
		t.Errorf("the database is gone: %v", err)
	}
	unlock()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// finishWaits says whether a journal's end waits for a lock.
func finishWaits() bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "[sync.Mutex.Lock") && strings.Contains(stack, "(*Journal).finish") {
			return true
		}
	}
	return false
}
