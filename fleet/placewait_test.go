package fleet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Calls for which no worker has a place wait for one, in the order in which they began, as
// long as the caller's own queue has room for them.
func TestCallsWaitForAPlace(t *testing.T) {
	t.Parallel()
	h := newHeld(t, func(c *fleet.Config) { c.Supervisor.Admission.Queue = 6 }, "w1")
	a := h.busy("a", "w1")
	var calls []*fleet.Call
	for i := range 6 {
		calls = append(calls, h.start(fmt.Sprint("next-", i)))
		h.wait(i + 1)
	}
	h.overloadedOf(map[string]*fleet.Call{"late": h.start("late")}, "6 calls wait already")
	calls[4].Abort(api.ReasonUser) // which waits for a place
	await(t, calls[4].Done())
	if got := calls[4].Result(); got.Status != api.StatusCancelled || got.Retry.SideEffects != "none" {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	h.ends("a", a, "w1")
	for i, c := range calls {
		if i != 4 {
			h.ends(fmt.Sprint("next-", i), c, "w1")
		}
	}
	raw, err := os.ReadFile(filepath.Join(h.dir, "starts"))
	if got := strings.Fields(string(raw)); err != nil || strings.Join(got, " ") != "a next-0 next-1 next-2 next-3 next-5" {
		t.Errorf("started in the order %q, %v", got, err)
	}
}

// A call that waits for the only worker goes on waiting while that is started again.
func TestCallsWaitForAWorkerThatComesBack(t *testing.T) {
	t.Parallel()
	h := &held{newWorld(t, "w1"), t.TempDir()}
	first := h.work("w1", h.oneSlot)
	a := h.busy("a", "w1")
	b := h.start("b")
	h.wait(1)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, a.Done())
	h.wait(1)
	h.work("w1", h.oneSlot)
	h.runs("b")
	h.ends("b", b, "w1")
}

// left starts a worker with a long lease and ends it, after what is done before.
func (h *held) left(name string, before func(*worker.Worker)) {
	h.t.Helper()
	w := h.work(name, h.leased)
	before(w)
	if err := w.Close(); err != nil {
		h.t.Fatal(err)
	}
	wait.Until(h.t, name+" has left", func() bool {
		left, _ := h.fleet.Gone()
		return slices.Contains(left, name)
	})
}

func (h *held) leased(c *worker.Config) {
	h.oneSlot(c)
	c.Lease = time.Minute
}

// A new call waits as well for a worker that has left and may be started again, and ends as
// one that never started, with its profile, when it is aborted.
func TestNewCallsWaitForAWorkerThatHasLeft(t *testing.T) {
	t.Parallel()
	h := &held{newWorld(t, "w1"), t.TempDir()}
	h.left("w1", func(*worker.Worker) {})
	b, c := h.start("b"), h.start("c")
	h.wait(2)
	c.Abort(api.ReasonUser)
	await(t, c.Done())
	if got := c.Result(); got.Status != api.StatusCancelled || got.Timing.Profile != budget.ToolCall {
		t.Errorf("%s %+v", got.Message, got.Timing)
	}
	h.work("w1", h.leased)
	h.runs("b")
	h.ends("b", b, "w1")
}

// No call waits for a worker that somebody has drained or removed.
func TestNoCallWaitsForAWorkerThatIsNotToReturn(t *testing.T) {
	t.Parallel()
	for _, drained := range []bool{true, false} {
		t.Run(map[bool]string{true: "drained", false: "removed"}[drained], func(t *testing.T) {
			h := &held{newWorld(t, "w1"), t.TempDir()}
			h.left("w1", func(w *worker.Worker) {
				if drained {
					h.fleet.Drain("w1")
					await(t, w.DrainAsked())
				}
			})
			if !drained {
				h.fleet.Remove("w1")
			}
			got := h.call(h.request("a"))
			if got.Status != api.StatusOverloaded || got.Timing.Profile != budget.ToolCall || !strings.Contains(got.Message, "none that takes calls") {
				t.Errorf("%s %+v", got.Message, got.Timing)
			}
		})
	}
}

// A call that waits for a worker says so from the beginning, and starts when it has one.
func TestACallThatWaitsIsQueued(t *testing.T) {
	t.Parallel()
	h := newHeld(t, asItIs, "w1")
	a := h.busy("a", "w1")
	events := make(chan api.Event, 100)
	r := h.request("b")
	r.Events = events
	b := h.fleet.Start(t.Context(), r)
	h.wait(1)
	if len(events) != 1 || (<-events).Kind != api.EventQueued {
		t.Error("it has not said that it waits, and only that")
	}
	h.ends("a", a, "w1")
	h.ends("b", b, "w1")
	if e := <-events; e.Kind != api.EventStarted {
		t.Errorf("then comes %s", e.Kind)
	}
}

// A call that waits for this machine is offered to a worker again that had no place for it.
func TestWhoWaitsForThisMachineMayGoToAWorker(t *testing.T) {
	t.Parallel()
	h, here, other := allBusy(t, asItIs)
	var calls []*fleet.Call
	for i := range 3 { // w1 has no place for the last
		calls = append(calls, h.fleet.Start(t.Context(), shell("echo ran")))
		h.wait(i + 1)
	}
	h.ends("other", other, "w1")
	for i, c := range calls {
		await(t, c.Done())
		if got := c.Result(); !got.OK() || got.Where == nil {
			t.Errorf("%d: %s %+v", i, got.Message, got.Where)
		}
	}
	h.ends("here", here, "")
}

// A call that waits for a place at a worker gets the slot of this machine that is free before,
// and none that comes later overtakes it.
func TestWhoWaitsForAPlaceMayRunHere(t *testing.T) {
	t.Parallel()
	h, here, other := allBusy(t, asItIs)
	ids := []string{"next-1", "next-2"} // which wait for w1 alone
	var calls, free []*fleet.Call
	for i, id := range ids {
		calls = append(calls, h.start(id))
		h.wait(i + 1)
	}
	for i := range 2 {
		free = append(free, h.fleet.Start(t.Context(), shell("date +%s%N")))
		h.wait(len(ids) + i + 1)
	}
	h.ends("here", here, "")
	ranHereInOrder(t, free)
	h.ends("other", other, "w1")
	for i, id := range ids {
		h.ends(id, calls[i], "w1")
	}
}
