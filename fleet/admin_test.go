package fleet_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/api"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A worker that the caller drains takes no more calls, ends what it has, and leaves.
func TestDrainByTheCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1", "w2")
	one := w.work("w1", nil)
	if w.fleet.Drain("w2") {
		t.Error("a worker drains that was never there")
	}
	running := w.begun()
	if !w.fleet.Drain("w1") {
		t.Fatal("the worker is not known")
	}
	await(t, one.DrainAsked())
	if got := w.call(shell("echo x")); got.Status != api.StatusOverloaded || !got.Retry.Retryable || !strings.Contains(got.Message, "; w1: it was drained: start it again") {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	w.work("w2", nil)
	if got := w.call(shell("echo x")); !got.OK() || got.Where.Worker != "w2" {
		t.Errorf("%s %+v", got.Message, got.Where)
	}
	if list := w.fleet.Workers(); len(list) != 2 || list[0].State != "draining" || list[0].Free != 1 {
		t.Errorf("%+v", list)
	}
	running.Abort(api.ReasonUser)
	if err := one.Drain(wait.Context(t)); err != nil {
		t.Error(err)
	}
	if got := running.Result(); got.Status != api.StatusCancelled {
		t.Errorf("what ran there: %s %s", got.Status, got.Message)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	wait.Until(t, "the worker has left", func() bool { return len(w.fleet.Workers()) == 1 })
	if left, removed := w.fleet.Gone(); len(left) != 1 || left[0] != "w1" || len(removed) != 0 {
		t.Errorf("left: %v, removed: %v", left, removed)
	}
	w.work("w1", nil) // its next life takes calls
}

// One that is removed is ended at once: its connections, what it runs, and its key. Others
// keep theirs.
func TestRemove(t *testing.T) {
	stage.Of(t, "fleet")
	t.Parallel()
	w := newWorld(t, "w1", "w2")
	w.work("w1", nil)
	running := w.begun()
	w.work("w2", func(c *worker.Config) { c.Slots = 3 })
	if w.fleet.Knows("w3") || !w.fleet.Knows("w1") {
		t.Error("the wrong workers are known")
	}
	w.fleet.Remove("w1")
	if err := w.engine.Remove("w1"); err != nil {
		t.Fatal(err)
	}
	if list := w.fleet.Workers(); len(list) != 1 || list[0].Name != "w2" || list[0].State != "taking" {
		t.Errorf("%+v", list)
	}
	for range 4 {
		if got := w.call(shell("echo x")); !got.OK() || got.Where.Worker != "w2" {
			t.Errorf("%s %+v", got.Message, got.Where)
		}
	}
	await(t, running.Done())
	if got := running.Result(); got.Status != api.StatusLost || got.Where.StillRunning != "no" || got.Timing.ElapsedMs == 0 || got.Timing.TimeoutMs == nil {
		t.Errorf("what ran there: %s %+v %+v %s", got.Status, got.Where, got.Timing, got.Message)
	}
	if left, removed := w.fleet.Gone(); len(left) != 0 || len(removed) != 1 || removed[0] != "w1" {
		t.Errorf("left: %v, removed: %v", left, removed)
	}
	if w.fleet.Knows("w1") || w.fleet.Drain("w1") {
		t.Error("it is known all the same")
	}
}

// Nothing that a removed worker says counts, and it is sent nothing more, also where the
// engine lets it in as before: its calls are lost, and those that it was not told to start
// go on without it.
func TestRemoveWhereTheEngineGoesOn(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		early  bool // it is removed before it is ready
		status api.Status
		goes   int64
	}{
		"before the go": {true, api.StatusOverloaded, 0},
		"with the go":   {false, api.StatusLost, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "w1")
			var goes atomic.Int64
			w.liar(func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
				switch {
				case o.Attempt != nil && of.early:
					w.fleet.Remove("w1")
					fallthrough
				case o.Attempt != nil:
					reply(ready())
				case c.GetGo() != nil:
					goes.Add(1)
					w.fleet.Remove("w1")
					reply(dataOf(1, &fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: []byte(`{"callId":"x","status":"ok"}`)}}))
				}
			})
			r := shell("true")
			r.ID = "x"
			got := w.call(r)
			if got.Status != of.status || goes.Load() != of.goes || got.Status == api.StatusLost && got.Where.StillRunning != "no" {
				t.Errorf("%s after %d goes: %s %+v", got.Status, goes.Load(), got.Message, got.Where)
			}
			r = shell("true")
			r.Where = map[string]string{"worker": "w1"}
			if got := w.call(r); got.Status != api.StatusOverloaded || !strings.Contains(got.Message, "; w1: it was removed from the fleet") {
				t.Errorf("%s %s", got.Status, got.Message)
			}
		})
	}
}
