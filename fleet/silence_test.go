package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// A worker is asked again what became of the place that it keeps: its word may have been lost
// meanwhile.
func TestALostPlaceIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	conn, _ := w.dial(w.workers["w1"])
	var offers, beats atomic.Int64
	var mute atomic.Bool
	w.subscribe(conn, link.CallerBeats, func(m *nats.Msg) {
		var b fleetv1.CallerBeat
		if mute.Load() || seal.Open(seal.Beat, w.key.Public(), nil, m.Data, &b) != nil {
			return
		}
		raw, _ := proto.Marshal(&fleetv1.Beat{Epoch: "e", Number: uint64(beats.Add(1)), Free: 1, Slots: 1, LeaseMs: 60_000, Hears: []string{b.Life}, Protocol: link.Protocol})
		_ = conn.Publish(link.WorkerBeat("w1"), raw)
	})
	w.subscribe(conn, link.ForWorker("w1"), func(m *nats.Msg) {
		var o fleetv1.Offer
		if seal.Open(seal.Offer, w.key.Public(), nil, m.Data, &o) != nil {
			return
		}
		f := &fleetv1.Frame{Epoch: o.Attempt.Epoch, Serial: o.Attempt.Serial, What: &fleetv1.Frame_Queued{Queued: &fleetv1.Queued{Waiting: 1}}}
		if offers.Add(1) > 1 {
			f.What = &fleetv1.Frame_Never{Never: &fleetv1.Never{Why: fleetv1.Why_WHY_CANNOT, Detail: "the place is lost"}}
		}
		raw, _ := proto.Marshal(f)
		_ = conn.Publish(m.Reply, raw)
	})
	w.there("w1")
	c := w.fleet.Start(t.Context(), shell("true"))
	wait.Until(t, "the call waits", func() bool { return w.fleet.Waiting() == 1 })
	mute.Store(true)
	wait.Until(t, "the worker is silent, and the call has seen it", func() bool { return w.fleet.Workers()[0].SilentMs > 2000 })
	mute.Store(false)
	wait.Until(t, "it is offered again", func() bool { return offers.Load() > 1 })
	c.Abort(api.ReasonUser)
	await(t, c.Done())
}

// A place that the worker has forgotten is no place: the call goes on at once, and does not
// wait as long as for a slot.
func TestAForgottenPlace(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(c *fleet.Config) { c.Supervisor.Admission.Wait = time.Hour }, "w1")
	offers := map[uint64]int{}
	w.liar(func(reply func(*fleetv1.Frame), o *fleetv1.Offer, _ *fleetv1.Control) {
		if o.Attempt == nil {
			return
		}
		offers[o.Attempt.Serial]++
		switch {
		case len(offers) > 1:
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Never{Never: &fleetv1.Never{Why: fleetv1.Why_WHY_CEILING, Detail: "the true answer"}}})
		case offers[o.Attempt.Serial] == 1:
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Queued{Queued: &fleetv1.Queued{Waiting: 1}}})
		default:
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Unknown{Unknown: &fleetv1.Unknown{}}})
		}
	})
	if got := w.call(shell("true")); got.Status != api.StatusOverloaded || !strings.Contains(got.Message, "the true answer") {
		t.Errorf("%s %s", got.Status, got.Message)
	}
}

// A worker that is still at it says so when an offer comes again, and starts the call once.
func TestAWorkerThatPreparesSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	var at atomic.Bool
	going, dir := make(chan struct{}), t.TempDir()
	w.work("w1", func(c *worker.Config) {
		c.Ceilings.Write = []string{dir}
		c.Supervisor.Own = func() sandbox.Own {
			if at.Load() {
				<-going
			}
			return sandbox.Own{}
		}
	})
	conn, _ := w.dial(filepath.Join(w.dir, "caller"))
	var said atomic.Int64
	w.subscribe(conn, link.FrameSubject(w.key.Public(), "w1", "*"), func(m *nats.Msg) {
		var f fleetv1.Frame
		if proto.Unmarshal(m.Data, &f) == nil && f.GetPreparing() != nil {
			said.Add(1)
		}
	})
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	at.Store(true)
	ran := filepath.Join(dir, "ran")
	r := shell("echo once >> " + ran)
	r.Sandbox, r.Where = &supervisor.Policy{Write: []string{dir}}, map[string]string{"worker": "w1"}
	c := w.fleet.Start(t.Context(), r)
	wait.Until(t, "the worker says that it is at it", func() bool { return said.Load() > 0 })
	close(going)
	await(t, c.Done())
	starts, _ := os.ReadFile(ran)
	if got := c.Result(); !got.OK() || string(starts) != "once\n" {
		t.Errorf("%s; starts: %q", got.Message, starts)
	}
}
