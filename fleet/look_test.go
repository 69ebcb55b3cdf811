package fleet

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/link"
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
	}{
		"its time is not over":        {func(c *remote) { c.started.TimeoutMs = 2 * long.Milliseconds() }, start.Running},
		"its time is over":            {func(*remote) {}, start.Lost},
		"it has waited for a human":   {func(c *remote) { c.waited = long }, start.Running},
		"a human is asked":            {func(c *remote) { c.questions = map[uint32]*question{1: {}} }, start.Running},
		"its result is on its way":    {func(c *remote) { c.came = now() }, start.Running},
		"it has no time limit":        {func(c *remote) { c.started.TimeoutMs = 0 }, start.Running},
		"it says one of years":        {func(c *remote) { c.started.TimeoutMs, c.started.GraceMs = 1<<62, 1<<62 }, start.Running},
		"it was aborted just now":     {func(c *remote) { c.started.TimeoutMs, c.aborted, c.ended = 0, 1, now() }, start.Running},
		"it was aborted long ago":     {func(c *remote) { c.started = &fleetv1.Started{GraceMs: 1 << 62}; c.aborted, c.ended = 1, now()-long }, start.Lost},
		"it was aborted while asking": {func(c *remote) { c.questions, c.aborted, c.ended = map[uint32]*question{1: {}}, 1, now()-long }, start.Lost},
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
		if c.look(); c.state.Phase() != of.want || of.want == start.Lost && c.gone.reason != api.ReasonProtocol {
			t.Errorf("%s: %s, %+v", name, c.state.Phase(), c.gone)
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
