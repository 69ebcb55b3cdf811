package fleet_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Of two daemons with one key the later one has calls made. Those of the other end, with
// nothing said of them that is not known, and all sides say what is wrong.
func TestTwoDaemonsOfOneKey(t *testing.T) {
	t.Parallel()
	w, log := newWorld(t, "w1"), &lines{}
	w.work("w1", func(c *worker.Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: log}) })
	c := w.begun()
	second, err := fleet.Open(t.Context(), fleet.Config{URL: "nats://" + w.engine.Address(), Key: w.key, WorkersOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	w.thereFor(second, "w1")
	await(t, c.Done())
	if got := c.Result(); got.Status != api.StatusLost && (got.Status != api.StatusCancelled || got.Reason != api.ReasonDisconnect) {
		t.Errorf("%s %s: %s", got.Status, got.Reason, got.Message)
	}
	says := func(f *fleet.Fleet) bool { return strings.Contains(f.Workers()[0].Trouble, "two daemons have one key") }
	wait.Until(t, "both daemons say so", func() bool { return says(w.fleet) && says(second) })
	if got := second.Call(t.Context(), shell("true")); !got.OK() {
		t.Errorf("the later one: %s", got.Message)
	}
	if n := log.count("two daemons have one key"); n != 1 || w.fleet.Workers()[0].State != api.WorkerSuspect {
		t.Errorf("it was logged %d times, and the first one's worker is %s", n, w.fleet.Workers()[0].State)
	}
	if f := w.askOfAnotherLife(); f.GetUnknown() == nil {
		t.Errorf("what another life asks about: %v", f)
	}
}

// askOfAnotherLife is what w1 says of a call of a life that it does not hear.
func (w *world) askOfAnotherLife() *fleetv1.Frame {
	w.t.Helper()
	conn, _ := w.dial(filepath.Join(w.dir, "caller"))
	beats, err := conn.SubscribeSync(link.WorkerBeat("w1"))
	if err != nil {
		w.t.Fatal(err)
	}
	answers, err := conn.SubscribeSync(link.FrameSubject(w.key.Public(), "w1", "anInbox"))
	if err != nil {
		w.t.Fatal(err)
	}
	beat, f := &fleetv1.Beat{}, &fleetv1.Frame{}
	m, err := beats.NextMsgWithContext(wait.Context(w.t))
	if err != nil || proto.Unmarshal(m.Data, beat) != nil {
		w.t.Fatalf("no beat: %v", err)
	}
	raw, err := w.key.Seal(seal.Control, &fleetv1.Control{
		Attempt: &fleetv1.Attempt{Caller: w.key.Public(), Life: "another", Serial: 1, Worker: "w1", Epoch: beat.Epoch},
		Inbox:   "anInbox", What: &fleetv1.Control_Query{Query: &fleetv1.Query{}},
	})
	if err == nil {
		err = conn.Publish(link.ControlSubject("w1", w.key.Public()), raw)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if m, err = answers.NextMsgWithContext(wait.Context(w.t)); err != nil || proto.Unmarshal(m.Data, f) != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	return f
}
