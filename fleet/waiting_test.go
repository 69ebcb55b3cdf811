package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// held has calls run until they are let go, and leave word that they have started.
type held struct {
	*world
	dir string
}

func newHeld(t *testing.T, adjust func(*fleet.Config), names ...string) *held {
	t.Helper()
	h := &held{newWorldWith(t, adjust, names...), t.TempDir()}
	for _, name := range names {
		h.work(name, h.oneSlot)
	}
	return h
}

func (h *held) oneSlot(c *worker.Config) {
	c.Slots, c.Ceilings.Write, c.Labels = 1, []string{h.dir}, map[string]string{"pool": "any"}
}

func asItIs(*fleet.Config) {}

func (h *held) request(id string) supervisor.Request {
	r := shell(fmt.Sprintf("cd %s; echo %s >> starts; while [ ! -e %s ]; do sleep 0.01; done", h.dir, id, id))
	r.ID, r.Sandbox, r.Where = id, &supervisor.Policy{Write: []string{h.dir}}, map[string]string{"pool": "any"}
	return r
}

// start begins a call on any worker.
func (h *held) start(id string) *fleet.Call {
	h.t.Helper()
	return h.fleet.Start(h.t.Context(), h.request(id))
}

// busy begins a call on a worker, and returns when it runs.
func (h *held) busy(id, on string) *fleet.Call {
	h.t.Helper()
	r := h.request(id)
	r.Where["worker"] = on
	c := h.fleet.Start(h.t.Context(), r)
	h.runs(id)
	return c
}

// allBusy is a fleet of this machine and one worker, with a slot each and a call in it:
// "here" and "other".
func allBusy(t *testing.T, adjust func(*fleet.Config)) (h *held, here, other *fleet.Call) {
	t.Helper()
	h = newHeld(t, func(c *fleet.Config) {
		c.WorkersOnly, c.Supervisor.Admission.Running = false, 1
		adjust(c)
	}, "w1")
	r := h.request("here")
	r.Where = nil
	here = h.fleet.Start(t.Context(), r)
	h.runs("here")
	return h, here, h.busy("other", "w1")
}

func (h *held) starts(id string) int {
	raw, err := os.ReadFile(filepath.Join(h.dir, "starts"))
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	return strings.Count(string(raw), id+"\n")
}

func (h *held) runs(id string) {
	h.t.Helper()
	wait.Until(h.t, id+" runs", func() bool { return h.starts(id) == 1 })
}

// wait waits until so many calls have places at workers.
func (h *held) wait(calls int) {
	h.t.Helper()
	wait.Until(h.t, fmt.Sprint(calls, " wait"), func() bool { return h.fleet.Waiting() == calls })
}

func (h *held) release(id string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, id), nil, 0o666); err != nil {
		h.t.Fatal(err)
	}
}

func (h *held) ends(id string, c *fleet.Call, on string) {
	h.t.Helper()
	h.release(id)
	await(h.t, c.Done())
	if got := c.Result(); !got.OK() || on != "" && got.Where.Worker != on || h.starts(id) != 1 {
		h.t.Errorf("%s: %s, %+v, started %d times", id, got.Message, got.Where, h.starts(id))
	}
}

// A busy worker keeps a place for a call, also for one that it would be told to start with
// the offer.
func TestABusyWorkerKeepsAPlace(t *testing.T) {
	t.Parallel()
	h := newHeld(t, asItIs, "w1")
	a := h.busy("a", "w1")
	b := h.start("b")
	h.wait(1)
	r := h.request("c")
	r.Tool.Idempotent = true
	c := h.fleet.Start(t.Context(), r)
	h.wait(2)
	h.release("b")
	h.release("c")
	h.ends("a", a, "w1")
	h.ends("b", b, "w1")
	h.ends("c", c, "w1")
}

// A call that waits at several workers runs at the first that has a slot, whichever that is,
// and holds none at the others.
func TestTheFirstFreeWorkerGetsTheCall(t *testing.T) {
	t.Parallel()
	h := newHeld(t, asItIs, "w1", "w2")
	on := map[string]*fleet.Call{"w1": h.busy("a", "w1"), "w2": h.busy("b", "w2")}
	ids := map[string]string{"w1": "a", "w2": "b"}
	for i, free := range []string{"w2", "w1", "w1", "w2"} {
		id := fmt.Sprintf("next-%d", i)
		c := h.start(id)
		h.ends(ids[free], on[free], free)
		h.runs(id)
		on[free], ids[free] = c, id
	}
	for name, c := range on {
		h.ends(ids[name], c, name)
	}
}

// overloadedOf waits for the one of several calls that is turned away, and returns the others.
func (h *held) overloadedOf(calls map[string]*fleet.Call, why string) map[string]*fleet.Call {
	h.t.Helper()
	var gone string
	wait.Until(h.t, "one is turned away", func() bool {
		for id, c := range calls {
			select {
			case <-c.Done():
				gone = id
			default:
			}
		}
		return gone != ""
	})
	got := calls[gone].Result()
	if got.Status != api.StatusOverloaded || !got.Retry.Retryable || got.Retry.SideEffects != "none" || got.Retry.Hint != "wait and call again" || !strings.Contains(got.Message, why) {
		h.t.Errorf("%s: %s %+v", got.Status, got.Message, got.Retry)
	}
	delete(calls, gone)
	return calls
}

// The caller's own queue bounds how many calls wait, at the workers and for a place there.
func TestPlacesAreBounded(t *testing.T) {
	t.Parallel()
	for _, places := range []int{1, 2} {
		h := newHeld(t, func(c *fleet.Config) { c.Supervisor.Admission.Queue = places }, "w1")
		a := h.busy("a", "w1")
		rest := map[string]*fleet.Call{}
		for _, id := range []string{"b", "c", "d"}[:places+1] {
			rest[id] = h.start(id)
		}
		rest = h.overloadedOf(rest, fmt.Sprintf("%d calls wait", places))
		h.ends("a", a, "w1")
		for id := range rest {
			h.release(id)
		}
		for id, c := range rest {
			h.ends(id, c, "w1")
		}
	}
}

// A call does not wait for ever, says how long it has, and does not start once it has given up.
func TestAWaitEnds(t *testing.T) {
	t.Parallel()
	h := newHeld(t, func(c *fleet.Config) { c.Supervisor.Admission.Wait = 200 * time.Millisecond }, "w1")
	a := h.busy("a", "w1")
	b := h.start("b")
	h.overloadedOf(map[string]*fleet.Call{"b": b}, "no slot has become free within 200ms")
	if got := b.Result().Timing.QueueMs; got < 200 {
		t.Errorf("it says that it has waited %d ms", got)
	}
	c := h.start("c")
	c.Abort(api.ReasonUser)
	await(t, c.Done())
	if got := c.Result(); got.Status != api.StatusCancelled || got.Retry.SideEffects != "none" {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	h.ends("a", a, "w1")
	h.ends("d", h.start("d"), "w1")
	if h.starts("b") != 0 || h.starts("c") != 0 {
		t.Error("one that has given up has started")
	}
}

// That a worker has no slot hides no refusal.
func TestABusyWorkerRefuses(t *testing.T) {
	t.Parallel()
	h := newHeld(t, asItIs, "w1")
	a := h.busy("a", "w1")
	for _, idempotent := range []bool{false, true} {
		r := supervisor.Request{
			Tool:      supervisor.Tool{Path: os.Args[0], Name: "echo", Idempotent: idempotent},
			Arguments: json.RawMessage(`{"text":"hi"}`), SHA256: strings.Repeat("0", 64),
		}
		if got := h.fleet.Call(wait.Context(t), r); got.Status != api.StatusPolicyViolation || got.Retry.SideEffects != "none" {
			t.Errorf("idempotent %t: %s %s", idempotent, got.Status, got.Message)
		}
	}
	h.ends("a", a, "w1")
}

// ranHereInOrder waits for calls that print when they began, and wants them to have run on
// this machine in their order.
func ranHereInOrder(t *testing.T, calls []*fleet.Call) {
	t.Helper()
	var order []string
	for _, c := range calls {
		await(t, c.Done())
		got := c.Result()
		if !got.OK() || got.Where != nil {
			t.Errorf("%s %+v", got.Message, got.Where)
		}
		order = append(order, got.Output.Stdout.Head)
	}
	if !slices.IsSorted(order) {
		t.Errorf("one that came later was first: %q", order)
	}
}

// Calls that wait for this machine as well have its next slot before those that come later,
// in their order, and say how long they have waited.
func TestNoneOvertakesThoseWhoWait(t *testing.T) {
	t.Parallel()
	h, a, b := allBusy(t, asItIs)
	anywhere := func() *fleet.Call { return h.fleet.Start(t.Context(), shell("date +%s%N")) }
	calls := []*fleet.Call{anywhere()}
	h.wait(1)
	began := time.Now()
	calls = append(calls, anywhere())
	h.wait(2)
	waited := time.Since(began)
	h.ends("here", a, "")
	calls = append(calls, anywhere()) // w1 has no place for it
	ranHereInOrder(t, calls)
	if got := calls[0].Result().Timing; got.QueueMs < waited.Milliseconds() {
		t.Errorf("it has waited for more than %s: %d ms", waited, got.QueueMs)
	}
	h.ends("other", b, "w1")
}

// Where calls wait for this machine and there is no place behind them, what comes later is
// turned away, and overtakes none.
func TestAFullLineLetsNoneOvertake(t *testing.T) {
	t.Parallel()
	h, a, b := allBusy(t, func(c *fleet.Config) { c.Supervisor.Admission.Queue = 1 })
	first := h.fleet.Start(t.Context(), shell("echo ran"))
	h.wait(1)
	second := h.fleet.Start(t.Context(), shell("echo ran"))
	h.overloadedOf(map[string]*fleet.Call{"second": second}, "1 calls wait already")
	h.ends("here", a, "")
	await(t, first.Done())
	if got := first.Result(); !got.OK() || got.Where != nil {
		t.Errorf("%s %+v", got.Message, got.Where)
	}
	h.ends("other", b, "w1")
}

// Calls keep their places at a worker that is not heard for a while, but less than a lease.
func TestSilenceTakesNoPlaces(t *testing.T) {
	t.Parallel()
	h := &held{newWorld(t, "w1"), t.TempDir()}
	link := newWire(t, h.engine.Address())
	h.work("w1", func(c *worker.Config) {
		c.URL, c.Lease, c.Slots, c.Ceilings.Write, c.Labels = link.url(), time.Minute, 1, []string{h.dir}, map[string]string{"pool": "any"}
	})
	a := h.busy("a", "w1")
	calls := map[string]*fleet.Call{"b": h.start("b"), "c": h.start("c")}
	h.wait(2)
	link.free[1].Lock()
	link.free[0].Lock()
	wait.Until(t, "w1 is silent, and each call has seen it", func() bool { return h.fleet.Workers()[0].SilentMs > 2000 })
	calls["d"] = h.start("d") // for which no worker keeps a place
	link.free[1].Unlock()
	link.free[0].Unlock()
	for id := range calls {
		h.release(id)
	}
	h.ends("a", a, "w1")
	for id, c := range calls {
		h.ends(id, c, "w1")
	}
}

// A worker that had no slot for an offer with its go does not start a copy of it, for its
// caller was told that it never will.
func TestADeclinedOfferStartsNothing(t *testing.T) {
	t.Parallel()
	h := newHeld(t, asItIs, "w1")
	a := h.busy("a", "w1")
	overhears, _ := h.dial(h.workers["w1"])
	sent := make(chan *nats.Msg, 100)
	if _, err := overhears.ChanSubscribe(link.OfferSubject("w1", h.key.Public()), sent); err != nil {
		t.Fatal(err)
	}
	if err := overhears.Flush(); err != nil {
		t.Fatal(err)
	}
	r := h.request("b")
	r.Tool.Idempotent = true
	b := h.fleet.Start(t.Context(), r)
	h.wait(1)
	b.Abort(api.ReasonUser)
	await(t, b.Done())
	h.ends("a", a, "w1")
	conn, _ := h.dial(filepath.Join(h.world.dir, "caller"))
	copied := <-sent
	if err := errors.Join(conn.PublishMsg(copied), conn.Flush()); err != nil {
		t.Fatal(err)
	}
	h.ends("c", h.start("c"), "w1") // it comes behind that
	if got := b.Result(); got.Status != api.StatusCancelled || got.Retry.SideEffects != "none" || h.starts("b") != 0 {
		t.Errorf("%s %+v, and it was started %d times", got.Status, got.Retry, h.starts("b"))
	}
}

// A worker that drains gives its places back, and the call goes on elsewhere.
func TestADrainingWorkerKeepsNoPlaces(t *testing.T) {
	t.Parallel()
	h := newHeld(t, asItIs, "w1", "w2")
	a, b := h.busy("a", "w1"), h.busy("b", "w2")
	c := h.start("c")
	h.wait(1)
	if !h.fleet.Drain("w1") {
		t.Fatal("w1 is not known")
	}
	wait.Until(t, "it drains", func() bool { return h.fleet.HasDrained("w1") })
	h.ends("a", a, "w1")
	h.ends("b", b, "w2")
	h.ends("c", c, "w2")
}

// A call that waits at workers waits for this machine as well.
func TestThisMachineMayBeFreeFirst(t *testing.T) {
	t.Parallel()
	h, a, b := allBusy(t, asItIs)
	c := h.fleet.Start(t.Context(), shell("echo ran"))
	h.wait(1)
	h.ends("here", a, "")
	await(t, c.Done())
	if got := c.Result(); !got.OK() || got.Where != nil {
		t.Errorf("%s %+v", got.Message, got.Where)
	}
	again := h.request("again")
	again.Where = nil
	a = h.fleet.Start(t.Context(), again)
	h.runs("again")
	c = h.fleet.Start(t.Context(), shell("echo ran"))
	h.wait(1)
	h.ends("other", b, "w1")
	await(t, c.Done())
	if got := c.Result(); !got.OK() || got.Where == nil {
		t.Errorf("%s %+v", got.Message, got.Where)
	}
	h.ends("again", a, "")
}
