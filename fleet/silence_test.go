package fleet_test

import (
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A worker that was silent is asked again what became of the place that it keeps: its word
// may have been lost meanwhile.
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
		raw, _ := proto.Marshal(&fleetv1.Beat{Epoch: "e", Number: uint64(beats.Add(1)), Free: 1, Slots: 1, LeaseMs: 60_000, Hears: []string{b.Life}})
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
