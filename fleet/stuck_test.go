package fleet_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/unkillable"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// A call that its worker could not kill keeps its slot there until it is gone after all: the
// next one waits for it in the worker's line, where others may be asked for a slot as well. The
// worker can be drained all the same.
func TestAnUnkillableCallKeepsItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	opened := w.work("w1", func(c *worker.Config) { c.Slots = 1 })
	mark := "STUCK=" + rand.Text()
	r := supervisor.Request{Command: &supervisor.Command{Argv: []string{"sleep", "600"}}, Env: []string{mark}}
	c := w.fleet.Start(t.Context(), r)
	var stuck int
	wait.Until(t, "the tool runs", func() bool {
		for _, pid := range processes.WithEnvironment(mark) {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(name) == "sleep\n" {
				stuck = pid
			}
		}
		return stuck != 0
	})
	thaw := unkillable.Freeze(t, stuck)
	c.Abort(api.ReasonUser)
	c.Abort(api.ReasonUser)
	if got := c.Result(); got.Status != api.StatusUnkillable {
		t.Fatalf("%s: %s", got.Status, got.Message)
	}
	wait.Until(t, "nobody waits for the stuck one's end", func() bool { busy, unread := opened.Load(); return busy == 0 && unread == 0 })
	next := w.fleet.Start(t.Context(), shell("true"))
	wait.Until(t, "the next one waits", func() bool { return w.fleet.Waiting() == 1 || isClosed(next.Done()) })
	thaw()
	if got := next.Result(); !got.OK() {
		t.Error(got.Message)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
