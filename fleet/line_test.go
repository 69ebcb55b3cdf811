package fleet_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// A call that began before another has this machine's next slot before it, also where its
// worker has said later that it has none.
func TestTheLineIsByBeginning(t *testing.T) {
	t.Parallel()
	h := &held{newWorldWith(t, func(c *fleet.Config) { c.WorkersOnly, c.Supervisor.Admission.Running = false, 1 }, "w1"), t.TempDir()}
	var mu sync.Mutex
	var say []func()
	h.liar(func(reply func(*fleetv1.Frame), o *fleetv1.Offer, _ *fleetv1.Control) {
		mu.Lock()
		defer mu.Unlock()
		if o.Attempt != nil {
			say = append(say, func() { reply(&fleetv1.Frame{What: &fleetv1.Frame_Queued{Queued: &fleetv1.Queued{Waiting: 1}}}) })
		}
	})
	here := h.request("here")
	here.Where = nil
	a := h.fleet.Start(t.Context(), here)
	h.runs("here")
	var calls []*fleet.Call
	for n := range 2 {
		calls = append(calls, h.fleet.Start(t.Context(), shell("date +%s%N")))
		wait.Until(t, "it is offered", func() bool { mu.Lock(); defer mu.Unlock(); return len(say) > n })
	}
	mu.Lock()
	second, first := say[1], say[0]
	mu.Unlock()
	second()
	h.wait(1)
	first()
	h.wait(2)
	h.ends("here", a, "")
	var order []string
	for _, c := range calls {
		await(t, c.Done())
		order = append(order, c.Result().Output.Stdout.Head)
	}
	if !slices.IsSorted(order) || order[0] == "" {
		t.Errorf("the second was first: %q", order)
	}
}

// A call that has waited for a slot anywhere as long as it may does not wait for this
// machine's once more.
func TestAWaitForThisMachineEnds(t *testing.T) {
	t.Parallel()
	h, a, b := allBusy(t, func(c *fleet.Config) { c.Supervisor.Admission.Wait = 200 * time.Millisecond })
	h.overloadedOf(map[string]*fleet.Call{"c": h.fleet.Start(t.Context(), shell("true"))}, "no slot has become free within 200ms")
	h.ends("here", a, "")
	h.ends("other", b, "w1")
}

// Calls that come at once have no slot of this machine twice: those without one wait where
// the first free one, here or at a worker, is theirs.
func TestASlotHereIsOneCalls(t *testing.T) {
	t.Parallel()
	workers := []string{"w1", "w2", "w3"}
	w := newWorldWith(t, func(c *fleet.Config) { c.WorkersOnly, c.Supervisor.Admission.Running = false, 1 }, workers...)
	for _, name := range workers {
		w.work(name, func(c *worker.Config) { c.Slots = 1 })
	}
	load := func() supervisor.Health { return w.fleet.Host().Health() }
	for range 10 {
		wait.Until(t, "all slots are free", func() bool {
			taken := slices.ContainsFunc(w.fleet.Workers(), func(w api.Worker) bool { return w.Free != w.Slots })
			return !taken && load().Running == 0
		})
		all, begin := make([]*fleet.Call, 1+len(workers)+2), make(chan struct{})
		var starting sync.WaitGroup
		for n := range all {
			starting.Go(func() { <-begin; all[n] = w.fleet.Start(t.Context(), shell("exec sleep 1000")) })
		}
		close(begin)
		starting.Wait()
		wait.Until(t, "all but two have slots", func() bool { return w.fleet.Waiting() == 2 })
		if got := load(); got.Running != 1 || got.Waiting != 0 {
			t.Errorf("here %+v", got)
		}
		for _, c := range all {
			c.Abort(api.ReasonUser)
		}
		for _, c := range all {
			await(t, c.Done())
		}
	}
}

// A call whose places at a worker others take first is offered again for as long as it waits.
func TestPlacesThatOthersTake(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(c *fleet.Config) { c.Supervisor.Admission.Wait = time.Hour }, "w1")
	offers := 0
	w.liar(func(reply func(*fleetv1.Frame), o *fleetv1.Offer, _ *fleetv1.Control) {
		if o.Attempt == nil {
			return
		}
		never := &fleetv1.Never{Why: fleetv1.Why_WHY_BUSY, Detail: "it is taken"}
		if offers++; offers > 10 {
			never = &fleetv1.Never{Why: fleetv1.Why_WHY_CEILING, Detail: "the true answer"}
		}
		reply(&fleetv1.Frame{What: &fleetv1.Frame_Never{Never: never}})
	})
	if got := w.call(shell("true")); got.Status != api.StatusOverloaded || !strings.Contains(got.Message, "the true answer") {
		t.Errorf("%s %s", got.Status, got.Message)
	}
}
