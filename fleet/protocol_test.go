package fleet_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A worker that speaks another protocol gets no calls, and those say which versions do not
// go together, and what to do.
func TestAWorkerOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(c *fleet.Config) { c.Version = "1.1.0" }, "w1")
	conn, _ := w.dial(w.workers["w1"])
	offers := make(chan *nats.Msg, 1)
	if _, err := conn.ChanSubscribe(link.ForWorker("w1"), offers); err != nil {
		t.Fatal(err)
	}
	w.subscribe(conn, link.CallerBeats, func(m *nats.Msg) {
		var b fleetv1.CallerBeat
		if seal.Open(seal.Beat, w.key.Public(), nil, m.Data, &b) == nil {
			raw, _ := proto.Marshal(&fleetv1.Beat{Epoch: "e", Number: 1, Free: 1, Slots: 1, LeaseMs: 60_000, Hears: []string{b.Life}, Protocol: link.Protocol + 1, Version: "2.0.0"})
			_ = conn.Publish(link.WorkerBeat("w1"), raw)
		}
	})
	wait.Until(t, "it is incompatible", func() bool {
		list := w.fleet.Workers()
		return len(list) == 1 && list[0].State == api.WorkerIncompatible
	})
	got := w.call(shell("true"))
	want := fmt.Sprintf("w1: the worker is toolhost 2.0.0 (fleet protocol %d), and its caller toolhost 1.1.0 (fleet protocol %d): install the same version on both", link.Protocol+1, link.Protocol)
	if got.Status != api.StatusOverloaded || !strings.Contains(got.Message, want) || len(offers) > 0 {
		t.Errorf("%s %s, and %d offers", got.Status, got.Message, len(offers))
	}
}

// Nor does a worker make calls for a caller of another protocol, such as one from before
// there were numbers.
func TestACallerOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", func(c *worker.Config) { c.Version = "2.0.0" })
	conn, key := w.dial(filepath.Join(w.dir, "caller"))
	var newest atomic.Pointer[fleetv1.Beat]
	w.subscribe(conn, link.WorkerBeats, func(m *nats.Msg) {
		b := &fleetv1.Beat{}
		if proto.Unmarshal(m.Data, b) == nil {
			newest.Store(b)
		}
	})
	var said atomic.Pointer[string]
	inbox := link.FrameSubject(key.Public(), "w1", "old")
	w.subscribe(conn, inbox, func(m *nats.Msg) {
		var f fleetv1.Frame
		if proto.Unmarshal(m.Data, &f) == nil && f.GetNever() != nil {
			said.Store(&f.GetNever().Detail)
		}
	})
	publish := func(kind seal.Kind, subject string, message proto.Message) {
		raw, err := key.Seal(kind, message)
		if err == nil {
			err = conn.PublishRequest(subject, inbox, raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := fmt.Sprintf("the worker is toolhost 2.0.0 (fleet protocol %d), and its caller toolhost of unknown version (fleet protocol 0): install the same version on both", link.Protocol)
	serial := uint64(0)
	wait.Until(t, "it is refused, and both versions are named", func() bool {
		b := newest.Load()
		if b == nil {
			return false
		}
		serial++
		publish(seal.Beat, link.CallerBeat(key.Public()), &fleetv1.CallerBeat{
			Caller: key.Public(), Life: "old", Echoes: []*fleetv1.Echo{{Worker: "w1", Epoch: b.Epoch, Beat: b.Number}},
		})
		publish(seal.Offer, link.OfferSubject("w1", key.Public()), &fleetv1.Offer{
			Attempt: &fleetv1.Attempt{Caller: key.Public(), Life: "old", Serial: serial, Worker: "w1", Epoch: b.Epoch}, Beat: b.Number, Request: []byte("{}"),
		})
		why := said.Load()
		return why != nil && *why == want
	})
}
