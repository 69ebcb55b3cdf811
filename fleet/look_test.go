package fleet

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/lease"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/place"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// No call waits for ever for a worker that is heard and sends no result, whatever that says of
// its time.
func TestAWorkerThatSendsNoResult(t *testing.T) {
	const long = time.Hour
	for name, of := range map[string]struct {
		set  func(c *remote)
		want start.Phase
		why  api.Reason // of one that is lost, if not the protocol
	}{
		"its time is not over":        {func(c *remote) { c.started.TimeoutMs = 2 * long.Milliseconds() }, start.Running, ""},
		"its time is over":            {func(*remote) {}, start.Lost, ""},
		"it has waited for a human":   {func(c *remote) { c.waited = long }, start.Running, ""},
		"a human is asked":            {func(c *remote) { c.times.asked() }, start.Running, ""},
		"it settles no question":      {func(c *remote) { c.questions = map[uint32]*question{1: {}} }, start.Lost, ""},
		"it never says it has begun":  {func(c *remote) { c.started = nil }, start.Lost, ""},
		"this machine was asleep":     {func(c *remote) { c.f.peers["w1"].watch = heardAt(now() - long) }, start.Lost, api.ReasonUnreachable},
		"its result is on its way":    {func(c *remote) { c.came = now() }, start.Running, ""},
		"it has no time limit":        {func(c *remote) { c.started.TimeoutMs = 0 }, start.Running, ""},
		"it says one of years":        {func(c *remote) { c.started.TimeoutMs, c.started.GraceMs = 1<<62, 1<<62 }, start.Running, ""},
		"it was aborted just now":     {func(c *remote) { c.started.TimeoutMs, c.aborted, c.ended = 0, 1, now() }, start.Running, ""},
		"it was aborted long ago":     {func(c *remote) { c.started = &fleetv1.Started{GraceMs: 1 << 62}; c.aborted, c.ended = 1, now()-long }, start.Lost, ""},
		"it was aborted while asking": {func(c *remote) { c.questions, c.aborted, c.ended = map[uint32]*question{1: {}}, 1, now()-long }, start.Lost, ""},
	} {
		p := &peer{name: "w1", epoch: "e", beat: &fleetv1.Beat{LeaseMs: 2000}}
		p.watch.Heard(1, now())
		a := &attempt{id: &fleetv1.Attempt{Worker: "w1", Epoch: "e"}, answered: now()}
		c := &remote{f: &Fleet{peers: map[string]*peer{"w1": p}}, request: supervisor.Request{}, attempts: []*attempt{a}, sent: now()}
		c.state.Offer(false)
		c.state.Ready(0)
		c.state.Started(0)
		c.started = &fleetv1.Started{TimeoutMs: 1000}
		c.placed, c.begun, c.came = now()-long, now()-long, now()-long
		of.set(c)
		if c.look(); c.state.Phase() != of.want || of.want == start.Lost && c.gone.reason != cmp.Or(of.why, api.ReasonProtocol) {
			t.Errorf("%s: %s, %+v", name, c.state.Phase(), c.gone)
		}
	}
}

// A call that has waited in vain names the workers that take none any more, and what to do.
func TestAWaitForNoWorker(t *testing.T) {
	for draining, want := range map[bool]string{
		false: "no slot has become free within 10s",
		true:  "no slot has become free within 10s; none that takes calls is there: toolhost doctor --fleet says what to do; w1: it was drained: start it again to have it back",
	} {
		p := &peer{name: "w1", epoch: "e", watch: heardAt(now()), beat: &fleetv1.Beat{Slots: 1, Draining: draining, LeaseMs: 2000, Hears: []string{"l"}, Protocol: link.Protocol}}
		c := &remote{f: &Fleet{life: "l", peers: map[string]*peer{"w1": p}}, waits: true}
		c.began = now() - time.Hour
		if c.look(); !c.turnedAway || c.whyNot() != want {
			t.Errorf("%q, want %q", c.whyNot(), want)
		}
	}
}

func heardAt(at time.Duration) (w lease.Watch) {
	w.Heard(1, at)
	return w
}

// The time of a call with secrets may be known only some time after it was told to start.
func TestATimeoutThatIsKnownLate(t *testing.T) {
	a := &attempt{id: &fleetv1.Attempt{Worker: "w1", Epoch: "e"}}
	c := &remote{attempts: []*attempt{a}}
	c.state.Offer(false)
	c.state.Ready(0)
	for _, ms := range []int64{0, 30_000, 60_000} {
		c.begun = -time.Hour
		for range 2 {
			c.frame(t.Context(), a, &fleetv1.Frame{What: &fleetv1.Frame_Started{Started: &fleetv1.Started{TimeoutMs: ms}}})
		}
		if c.begun < 0 || c.started.TimeoutMs != ms {
			t.Errorf("%d ms: its time began at %s, and is %d ms", ms, c.begun, c.started.TimeoutMs)
		}
		c.begun = -time.Hour
		c.frame(t.Context(), a, &fleetv1.Frame{What: &fleetv1.Frame_Started{Started: &fleetv1.Started{TimeoutMs: ms}}})
		if c.begun >= 0 {
			t.Errorf("%d ms: its time begins again", ms)
		}
	}
}

// A call may be refused many times over: what is kept of that is little.
func TestWhatIsKeptOfRefusals(t *testing.T) {
	long := make([]byte, portable.MaxRefusal+1)
	for _, of := range []struct {
		why    fleetv1.Why
		result []byte
		kept   int
	}{
		{fleetv1.Why_WHY_CANNOT, long[1:], portable.MaxRefusal},
		{fleetv1.Why_WHY_CANNOT, long, 0},
		{fleetv1.Why_WHY_BUSY, long[:1], 0},
	} {
		c := &remote{attempts: []*attempt{{}}}
		c.state.Offer(false)
		c.never(c.attempts[0], &fleetv1.Never{Why: of.why, Detail: strings.Repeat("x", 1000), Result: of.result})
		if r := c.refusals[0]; len(r.never.Result) != of.kept || r.never.Why != of.why || len(r.why)+len(r.never.Detail) > 600 {
			t.Errorf("%s: %d bytes are kept", of.why, len(r.never.Result))
		}
	}
}

// A worker that is to drain does so, whatever else it is.
func TestAWorkerThatDrainsAndIsUnlike(t *testing.T) {
	for name, of := range map[string]struct {
		p    *peer
		want place.State
	}{
		"it drains":                  {&peer{drain: "e", beat: &fleetv1.Beat{}}, place.Draining},
		"it drains by itself":        {&peer{beat: &fleetv1.Beat{Draining: true}}, place.Draining},
		"it drains, and is cut":      {&peer{drain: "e", cut: true, beat: &fleetv1.Beat{Protocol: link.Protocol}}, place.Draining},
		"it is cut":                  {&peer{cut: true, beat: &fleetv1.Beat{Protocol: link.Protocol}}, place.Suspect},
		"it was started again":       {&peer{drain: "before", beat: &fleetv1.Beat{}}, place.Incompatible},
		"it does not hear this life": {&peer{beat: &fleetv1.Beat{Protocol: link.Protocol}}, place.Suspect},
	} {
		of.p.epoch, of.p.watch = "e", heardAt(now())
		if got := of.p.state("l"); got != of.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// How long a silent worker is waited for is by its own word, within bounds.
func TestLeasesThatNoWorkerHas(t *testing.T) {
	f := &Fleet{}
	for n, ms := range []int64{0, -1, 1999, 60_001, 1 << 40, 1 << 60} {
		raw, err := proto.Marshal(&fleetv1.Beat{Epoch: "e", Number: 1, LeaseMs: ms, Protocol: link.Protocol})
		if err != nil {
			t.Fatal(err)
		}
		if f.hear(&nats.Msg{Subject: link.WorkerBeat("w1"), Data: raw}); len(f.peers) != 0 || f.refused != uint64(n+1) {
			t.Errorf("a lease of %d ms is taken", ms)
		}
	}
}
