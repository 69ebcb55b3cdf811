package fleet_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
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

// dial connects to the world's engine with a key, as a program that keeps to no protocol.
func (w *world) dial(keyFile string) (*nats.Conn, *fleet.Key) {
	w.t.Helper()
	key, err := fleet.ReadKey(keyFile)
	if err != nil {
		w.t.Fatal(err)
	}
	conn, err := nats.Connect("nats://"+w.engine.Address(), nats.Nkey(key.Public(), key.Sign))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(conn.Close)
	return conn, key
}

func (w *world) subscribe(conn *nats.Conn, subject string, f func(*nats.Msg)) {
	w.t.Helper()
	if _, err := conn.Subscribe(subject, f); err != nil {
		w.t.Fatal(err)
	}
}

// liar joins as w1 and answers each offer with what lie makes of it. again has it live again.
func (w *world) liar(lie func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control)) (again func()) {
	w.t.Helper()
	return w.liarAs("w1", lie)
}

func (w *world) liarAs(name string, lie func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control)) (again func()) {
	w.t.Helper()
	conn, _ := w.dial(w.workers[name])
	var epoch, beats atomic.Uint64
	beat := func(b *fleetv1.Beat) {
		b.Epoch, b.Number, b.LeaseMs, b.Protocol = fmt.Sprint("epoch-", epoch.Load()), beats.Add(1), 2000, link.Protocol
		raw, _ := proto.Marshal(b)
		_ = conn.Publish(link.WorkerBeat(name), raw)
	}
	w.subscribe(conn, link.CallerBeats, func(m *nats.Msg) {
		var b fleetv1.CallerBeat
		if seal.Open(seal.Beat, w.key.Public(), nil, m.Data, &b) != nil {
			return
		}
		beat(&fleetv1.Beat{Free: 1, Slots: 1, Hears: []string{b.Life}})
	})
	w.subscribe(conn, link.ForWorker(name), func(m *nats.Msg) {
		var o fleetv1.Offer
		var c fleetv1.Control
		id, to := &fleetv1.Attempt{}, m.Reply
		switch {
		case seal.Open(seal.Offer, w.key.Public(), nil, m.Data, &o) == nil:
			id = o.Attempt
		case seal.Open(seal.Control, w.key.Public(), nil, m.Data, &c) == nil:
			id, to = c.Attempt, link.FrameSubject(c.Attempt.Caller, name, c.Inbox)
		}
		lie(func(f *fleetv1.Frame) {
			f.Epoch, f.Serial = id.Epoch, id.Serial
			raw, _ := proto.Marshal(f)
			_ = conn.Publish(to, raw)
		}, &o, &c)
	})
	w.there(name)
	return func() {
		beat(&fleetv1.Beat{Leaving: true})
		epoch.Add(1)
	}
}

func ready() *fleetv1.Frame {
	return &fleetv1.Frame{What: &fleetv1.Frame_Ready{Ready: &fleetv1.Ready{}}}
}

func dataOf(seq uint64, d *fleetv1.Data) *fleetv1.Frame {
	d.Seq = seq
	return &fleetv1.Frame{What: &fleetv1.Frame_Data{Data: d}}
}

// A worker that lies costs the calls that it was told to start, and no more: what it makes
// up is no result, and what it sends beyond its credit is not held.
func TestAWorkerThatLies(t *testing.T) {
	for name, of := range map[string]struct {
		lie    func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control)
		status api.Status
		reason api.Reason
	}{
		"a result of another call": {func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
			switch {
			case o.Attempt != nil:
				reply(ready())
			case c.GetGo() != nil:
				reply(dataOf(1, &fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: []byte(`{"callId":"another"}`)}}))
			}
		}, api.StatusLost, api.ReasonProtocol},
		"a result before the go": {func(reply func(*fleetv1.Frame), o *fleetv1.Offer, _ *fleetv1.Control) {
			if o.Attempt != nil {
				reply(dataOf(1, &fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: []byte(`{}`)}}))
				reply(&fleetv1.Frame{What: &fleetv1.Frame_Started{Started: &fleetv1.Started{}}})
				reply(&fleetv1.Frame{What: &fleetv1.Frame_Gone{Gone: &fleetv1.Gone{Swept: true}}})
				reply(&fleetv1.Frame{What: &fleetv1.Frame_Never{Never: &fleetv1.Never{Detail: strings.Repeat("long ", 10_000)}}})
			}
		}, api.StatusOverloaded, api.ReasonAdmission},
		"a never after it has started": {func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
			switch {
			case o.Attempt != nil:
				reply(ready())
			case c.GetGo() != nil:
				reply(&fleetv1.Frame{What: &fleetv1.Frame_Started{Started: &fleetv1.Started{}}})
				reply(&fleetv1.Frame{What: &fleetv1.Frame_Never{Never: &fleetv1.Never{Result: make([]byte, 200<<10)}}})
			}
		}, api.StatusLost, api.ReasonProtocol},
		"events that are no JSON": {func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
			switch {
			case o.Attempt != nil:
				reply(ready())
			case c.GetGo() != nil:
				reply(dataOf(1, &fleetv1.Data{What: &fleetv1.Data_Event{Event: []byte("{")}}))
				reply(dataOf(2, &fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: []byte(strings.Repeat("[", 200_000))}}))
			}
		}, api.StatusLost, api.ReasonProtocol},
		"a frame of no kind": {func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
			switch {
			case o.Attempt != nil:
				reply(ready())
			case c.GetGo() != nil:
				reply(dataOf(1, &fleetv1.Data{}))
			}
		}, api.StatusLost, api.ReasonProtocol},
		"a result with a part too many": {func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
			switch {
			case o.Attempt != nil:
				reply(ready())
			case c.GetGo() != nil:
				reply(dataOf(1, &fleetv1.Data{What: &fleetv1.Data_Long{Long: &fleetv1.Long{Of: 1 << 30, Piece: []byte("x")}}}))
				reply(dataOf(2, &fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: []byte(`{}`)}}))
			}
		}, api.StatusLost, api.ReasonProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "w1")
			w.liar(of.lie)
			got := w.call(shell("true"))
			if got.Status != of.status || got.Reason != of.reason || len(got.Message) > 2000 {
				t.Errorf("%s %s %.300s", got.Status, got.Reason, got.Message)
			}
			if got.Status == api.StatusLost && got.Where.StillRunning != "unknown" {
				t.Errorf("it is believed: %+v", got.Where)
			}
			if known := w.fleet.Workers(); known[0].State != "taking" {
				t.Errorf("%+v", known)
			}
		})
	}
}

// A worker that sends more than it has credit for is not listened to until it is started
// again. The call takes nothing of it as long as that is to be seen.
func TestAWorkerThatIgnoresCredit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	var honest atomic.Bool
	again := w.liar(func(reply func(*fleetv1.Frame), o *fleetv1.Offer, _ *fleetv1.Control) {
		switch {
		case o.Attempt == nil:
			return
		case honest.Load():
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Never{Never: &fleetv1.Never{Why: fleetv1.Why_WHY_CEILING, Detail: "it is heard"}}})
			return
		}
		reply(ready())
		for seq := range uint64(20) {
			reply(dataOf(9+seq, &fleetv1.Data{What: &fleetv1.Data_Result{Result: make([]byte, 500<<10)}}))
		}
	})
	r, seen := shell("true"), make(chan struct{})
	r.Placed = func(string, int) error { <-seen; return nil }
	c := w.fleet.Start(t.Context(), r)
	wait.Until(t, "the worker is not listened to", func() bool { return w.fleet.Workers()[0].State == "suspect" })
	close(seen)
	await(t, c.Done())
	if got := c.Result(); got.Status != api.StatusLost || got.Reason != api.ReasonProtocol {
		t.Errorf("%s %s %.300s", got.Status, got.Reason, got.Message)
	}
	if known := w.fleet.Workers(); !strings.Contains(known[0].Trouble, "more than it may") || w.fleet.Refused() == 0 {
		t.Errorf("%+v, and %d messages were refused", known, w.fleet.Refused())
	}
	honest.Store(true)
	again()
	w.there("w1")
	if got := w.call(shell("true")); !strings.Contains(got.Message, "it is heard") {
		t.Error(got.Message)
	}
}

// What is made up, changed or sent again starts nothing, and is logged once. The ledger
// has a line for each start.
func TestForgedAndReplayed(t *testing.T) {
	t.Parallel()
	w, log := newWorld(t, "w1"), &lines{}
	w.work("w1", func(c *worker.Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: log}) })
	conn, _ := w.dial(filepath.Join(w.dir, "caller"))
	overhears, _ := w.dial(w.workers["w1"])
	sent := make(chan *nats.Msg, 100)
	heard, err := overhears.ChanSubscribe(link.ForWorker("w1"), sent)
	if err == nil {
		err = overhears.Flush()
	}
	for _, idempotent := range []bool{false, true} {
		r := shell("true")
		r.Tool.Idempotent = idempotent
		if got := w.call(r); !got.OK() {
			t.Fatal(got.Message)
		}
	}
	if err := errors.Join(err, overhears.Flush(), heard.Unsubscribe()); err != nil {
		t.Fatal(err)
	}
	const calls = 3
	if len(sent) < calls {
		t.Fatalf("%d messages were overheard", len(sent))
	}
	if n := w.fleet.Refused(); n != 0 {
		t.Errorf("%d messages were refused, and all are honest", n)
	}
	for len(sent) > 0 {
		w.forge(conn, <-sent)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := w.call(shell("true")); !got.OK() { // it comes behind all that
		t.Fatal(got.Message)
	}
	raw, err := os.ReadFile(filepath.Join(w.dir, "run-w1", "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), "start "); n != calls {
		t.Errorf("%d calls have started %d times", calls, n)
	}
	if n := log.count("its signature is not its sender's"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	wait.Until(t, "the worker has told that it has refused some", func() bool { return w.fleet.Refused() > 0 })
}

// forge sends what an engine that is not to be trusted could make of a message.
func (w *world) forge(conn *nats.Conn, m *nats.Msg) {
	w.t.Helper()
	publish := func(subject string, raw []byte) {
		if err := conn.PublishMsg(&nats.Msg{Subject: subject, Reply: m.Reply, Data: raw}); err != nil {
			w.t.Fatal(err)
		}
	}
	publish(m.Subject, m.Data) // again
	offer, control := link.OfferSubject("w1", w.key.Public()), link.ControlSubject("w1", w.key.Public())
	other := map[string]string{offer: control, control: offer}
	publish(other[m.Subject], m.Data)
	publish(m.Subject, make([]byte, 900<<10))
	for _, change := range []func(*fleetv1.Signed){
		func(s *fleetv1.Signed) { s.Mac, s.Signature = nil, nil },
		func(s *fleetv1.Signed) { s.Mac, s.Signature = make([]byte, 32), make([]byte, 64) },
		func(s *fleetv1.Signed) { s.Mac, s.Signature = nil, make([]byte, 64) },
		func(s *fleetv1.Signed) { s.Epoch = "another" },
		func(s *fleetv1.Signed) { s.Body = w.anotherSerial(link.Token(m.Subject, 4), s.Body) },
	} {
		var s fleetv1.Signed
		if err := proto.Unmarshal(m.Data, &s); err != nil {
			w.t.Fatal(err)
		}
		change(&s)
		raw, err := proto.Marshal(&s)
		if err != nil {
			w.t.Fatal(err)
		}
		publish(m.Subject, raw)
	}
}

// anotherSerial is the message as one of an attempt that was never made.
func (w *world) anotherSerial(kind string, body []byte) []byte {
	w.t.Helper()
	var o fleetv1.Offer
	var c fleetv1.Control
	message, id := proto.Message(&o), func() *fleetv1.Attempt { return o.Attempt }
	if kind == "ctl" {
		message, id = &c, func() *fleetv1.Attempt { return c.Attempt }
	}
	if err := proto.Unmarshal(body, message); err != nil {
		w.t.Fatal(err)
	}
	id().Serial += 1000
	raw, err := proto.Marshal(message)
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}
