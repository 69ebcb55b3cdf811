package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// A worker's call begins once it is on record that there is one, and not at all where that
// fails or the call is aborted meanwhile; also one that its worker would start with the offer.
func TestAWorkersCallWaitsForItsRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, "w1")
	w.work("w1", func(c *worker.Config) { c.Ceilings.Write = []string{dir} })
	for _, idempotent := range []bool{false, true} {
		marker := filepath.Join(dir, fmt.Sprint("begun-", idempotent))
		begun := func() bool {
			_, err := os.Stat(marker)
			return err == nil
		}
		r := shell("touch " + marker)
		r.Tool.Idempotent = idempotent
		r.Sandbox, r.Where = &supervisor.Policy{Write: []string{dir}}, map[string]string{"worker": "w1"}
		r.OnRecord = func(context.Context) error { return errors.New("the disk is full") }
		if got := w.call(r); got.Status != api.StatusStartFailed || got.Reason != api.ReasonHost || got.Retry.SideEffects != "none" {
			t.Errorf("idempotent %v, a full disk: %s, %s, %s", idempotent, got.Status, got.Retry.SideEffects, got.Message)
		}
		asked := make(chan struct{})
		for what, abort := range map[string]func(supervisor.Request) *api.Result{
			"an abort": func(r supervisor.Request) *api.Result {
				c := w.fleet.Start(t.Context(), r)
				<-asked
				c.Abort(api.ReasonUser)
				return c.Result()
			},
			"the end of its context": func(r supervisor.Request) *api.Result {
				ctx, cancel := context.WithCancel(t.Context())
				c := w.fleet.Start(ctx, r)
				<-asked
				cancel()
				return c.Result()
			},
		} {
			r.OnRecord = func(ctx context.Context) error {
				asked <- struct{}{}
				<-ctx.Done()
				return context.Cause(ctx)
			}
			if got := abort(r); got.Status != api.StatusCancelled || got.Reason != api.ReasonUser || got.Retry.SideEffects != "none" {
				t.Errorf("idempotent %v, %s: %s (%s), %s, %s", idempotent, what, got.Status, got.Reason, got.Retry.SideEffects, got.Message)
			}
		}
		if begun() {
			t.Errorf("idempotent %v: it has begun", idempotent)
		}
		r.OnRecord = func(context.Context) error {
			if begun() {
				t.Errorf("idempotent %v: it has begun before its record", idempotent)
			}
			return nil
		}
		if got := w.call(r); !got.OK() || !begun() {
			t.Errorf("idempotent %v: %s", idempotent, got.Message)
		}
	}
	wait.Until(t, "the worker has its slots back", func() bool {
		list := w.fleet.Workers()
		return len(list) == 1 && list[0].Free == list[0].Slots
	})
}

// Where this machine makes a call after all that a worker was told to start, that is on record,
// and else it is not made.
func TestACallThatRunsHereAfterAllIsOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(c *fleet.Config) { c.WorkersOnly, c.Supervisor.Admission.Running = false, 1 }, "w1")
	w.liar(func(reply func(*fleetv1.Frame), o *fleetv1.Offer, _ *fleetv1.Control) {
		if o.GetGo() {
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Never{Never: &fleetv1.Never{Why: fleetv1.Why_WHY_CANNOT}}})
		}
	})
	for _, full := range []bool{false, true} {
		first := w.fleet.Start(t.Context(), shell("sleep 1000"))
		var placed []string
		r := shell("echo ran")
		r.Tool.Idempotent = true
		r.Placed = func(worker string, attempt int) error {
			placed = append(placed, fmt.Sprint(worker, "/", attempt))
			if worker == "" {
				first.Abort(api.ReasonUser) // so that the call has a slot
			}
			if worker == "" && full {
				return errors.New("the disk is full")
			}
			return nil
		}
		got := w.call(r)
		if got.OK() == full || full && got.Reason != api.ReasonJournal || got.Where != nil {
			t.Errorf("full %v: %s %+v", full, got.Message, got.Where)
		}
		if !slices.Equal(placed, []string{"w1/1", "/1"}) {
			t.Errorf("full %v: it was placed at %q", full, placed)
		}
		await(t, first.Gone())
	}
}
