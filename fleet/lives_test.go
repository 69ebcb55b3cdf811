package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
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

// An offer that a worker gets after it was started again, and that was for its life before,
// starts nothing: the worker says what had become of it there, as far as that is on record.
func TestOffersOfAnotherLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	first := w.work("w1", nil)
	overhears, _ := w.dial(w.workers["w1"])
	sent := make(chan *nats.Msg, 100)
	if _, err := overhears.ChanSubscribe(link.OfferSubject("w1", w.key.Public()), sent); err != nil {
		t.Fatal(err)
	}
	if err := overhears.Flush(); err != nil {
		t.Fatal(err)
	}
	r := shell("true")
	r.Tool.Idempotent = true // so that the offer has the go
	if got := w.call(r); !got.OK() {
		t.Fatal(got.Message)
	}
	var signed fleetv1.Signed
	var o fleetv1.Offer
	if proto.Unmarshal((<-sent).Data, &signed) != nil || proto.Unmarshal(signed.Body, &o) != nil || !o.Go {
		t.Fatalf("not the offer: %v", &o)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	w.work("w1", nil)
	conn, _ := w.dial(filepath.Join(w.dir, "caller"))
	ask := func(id *fleetv1.Attempt) *fleetv1.Frame {
		t.Helper()
		of := proto.CloneOf(&o)
		of.Attempt = id
		raw, err := w.key.Seal(seal.Offer, of)
		if err != nil {
			t.Fatal(err)
		}
		inbox := link.FrameSubject(w.key.Public(), "w1", "anInbox")
		answers, err := conn.SubscribeSync(inbox)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answers.Unsubscribe() }()
		if err := conn.PublishRequest(link.OfferSubject("w1", w.key.Public()), inbox, raw); err != nil {
			t.Fatal(err)
		}
		m, err := answers.NextMsgWithContext(wait.Context(t))
		f := &fleetv1.Frame{}
		if err != nil || proto.Unmarshal(m.Data, f) != nil {
			t.Fatalf("no answer: %v", err)
		}
		return f
	}
	if f := ask(o.Attempt); !f.GetGone().GetSwept() {
		t.Errorf("one that had started: %v", f)
	}
	id := proto.CloneOf(o.Attempt)
	id.Serial += 100
	if f := ask(id); f.GetNever() == nil {
		t.Errorf("one that had not come: %v", f)
	}
	id.Epoch = "a life that nobody remembers"
	if f := ask(id); f.GetUnknown() == nil {
		t.Errorf("one of an unknown life: %v", f)
	}
	raw, err := os.ReadFile(filepath.Join(w.dir, "run-w1", "ledger"))
	if n := strings.Count(string(raw), "start "); err != nil || n != 1 {
		t.Errorf("%d calls have started: %v", n, err)
	}
}

// A second process with a worker's name and key gets no calls, and speaks for none, while
// the first one is heard: that one's calls go on. Both sides say so.
func TestTwoProcessesOfOneWorker(t *testing.T) {
	t.Parallel()
	callers, workers := &lines{}, &lines{}
	w := newWorldWith(t, func(c *fleet.Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: callers}) }, "w1")
	first := w.work("w1", nil)
	c := w.begun()
	elsewhere := func(c *worker.Config) {
		c.Dir, c.Logger = c.Dir+"-second", hclog.New(&hclog.LoggerOptions{Output: workers})
	}
	second := w.work("w1", elsewhere)
	wait.Until(t, "the caller says so", func() bool { return callers.count("two processes have the name") > 0 })
	wait.Until(t, "the second one says so", func() bool { return workers.count("another process has the name") > 0 })
	if got := w.call(shell("true")); !got.OK() {
		t.Error(got.Message)
	}
	c.Abort(api.ReasonUser)
	await(t, c.Done())
	if got := c.Result(); got.Status != api.StatusCancelled || got.Output.Stdout.Head != "it runs\n" {
		t.Errorf("%s: %s", got.Status, got.Message)
	}
	if got := w.fleet.Workers()[0].Trouble; !strings.Contains(got, "another process") {
		t.Errorf("its trouble is %q", got)
	}
	if n := callers.count("two processes"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the trouble is over", func() bool { return w.fleet.Workers()[0].Trouble == "" })
	w.work("w1", elsewhere)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	w.there("w1") // the second one
	if got := w.call(shell("true")); !got.OK() {
		t.Error(got.Message)
	}
}
