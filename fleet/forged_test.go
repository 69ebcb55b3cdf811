package fleet_test

import (
	"bytes"
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

// A caller's beat that another key has signed, that is of another kind, or that nobody has
// signed renews no lease and begins no life; it is logged once.
func TestForgedBeatsOfACaller(t *testing.T) {
	t.Parallel()
	w, log := newWorld(t, "w1"), &lines{}
	w.work("w1", func(c *worker.Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: log}) })
	running := w.begun()
	conn, own := w.dial(filepath.Join(w.dir, "caller"))
	stranger, err := fleet.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	beat := &fleetv1.CallerBeat{Caller: w.key.Public(), Life: "another"}
	for n := range uint64(100) {
		beat.Echoes = append(beat.Echoes, &fleetv1.Echo{Worker: "w1", Epoch: "a guess", Beat: n})
	}
	seals := func(key *fleet.Key, kind seal.Kind) []byte {
		raw, err := key.Seal(kind, beat)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for _, raw := range [][]byte{seals(stranger, seal.Beat), seals(own, seal.Control), nil, bytes.Repeat([]byte{0xff}, 900<<10)} {
		for range 3 {
			if err := conn.Publish(link.CallerBeat(w.key.Public()), raw); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A beat of its own key that echoes nothing the worker has sent is its own, and counts for nothing.
	if err := conn.Publish(link.CallerBeat(w.key.Public()), seals(own, seal.Beat)); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := w.call(shell("echo x")); !got.OK() {
		t.Errorf("the next call: %s", got.Message)
	}
	running.Abort(api.ReasonUser)
	await(t, running.Done())
	if got := running.Result(); got.Status != api.StatusCancelled || got.Reason != api.ReasonUser {
		t.Errorf("what ran beside them: %s %s", got.Status, got.Reason)
	}
	if n := log.count("a caller's beat is not its own"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
}

// A worker's beat that cannot be one changes nothing of what is known of it.
func TestBeatsThatAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	conn, _ := w.dial(w.workers["w1"])
	long, err := proto.Marshal(&fleetv1.Beat{Epoch: strings.Repeat("e", 65), Number: 1 << 60, Draining: true, Leaving: true})
	if err != nil {
		t.Fatal(err)
	}
	nameless, err := proto.Marshal(&fleetv1.Beat{Number: 1 << 60, Draining: true, Leaving: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range [][]byte{nil, long, nameless, bytes.Repeat([]byte{0xff}, 900<<10)} {
		if err := conn.Publish(link.WorkerBeat("w1"), raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := w.call(shell("echo x")); !got.OK() {
			t.Errorf("%s", got.Message)
		}
	}
	if list := w.fleet.Workers(); len(list) != 1 || list[0].State != api.WorkerTaking {
		t.Errorf("%+v", list)
	}
}

// A worker that knows another one's inbox can send nothing there: the engine lets it
// publish under its own name alone, and the caller takes an attempt's frames from the worker
// that it was offered to.
func TestFramesForAnotherInbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1", "w2")
	other, _ := w.dial(w.workers["w2"])
	forged := func(id *fleetv1.Attempt, inbox string, f *fleetv1.Frame) {
		f.Epoch, f.Serial = id.Epoch, id.Serial
		raw, _ := proto.Marshal(f)
		for _, as := range []string{"w1", "w2"} {
			_ = other.Publish(link.FrameSubject(id.Caller, as, inbox), raw)
		}
		_ = other.Flush()
	}
	w.liar(func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
		switch {
		case o.Attempt != nil:
			reply(ready())
		case c.GetGo() != nil:
			forged(c.Attempt, c.Inbox, dataOf(1, &fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: []byte(`{"callId":"x","status":"ok"}`)}}))
			forged(c.Attempt, c.Inbox, &fleetv1.Frame{What: &fleetv1.Frame_Gone{Gone: &fleetv1.Gone{Swept: true}}})
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Never{Never: &fleetv1.Never{Why: fleetv1.Why_WHY_BUSY, Detail: "the true answer"}}})
		}
	})
	r := shell("true")
	r.ID = "x"
	if got := w.call(r); got.Status != api.StatusOverloaded || !strings.Contains(got.Message, "the true answer") {
		t.Errorf("%s %s %s", got.Status, got.Reason, got.Message)
	}
}

// What a worker says that it has refused counts from when it is known, and within bounds.
func TestRefusalsOfABeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	conn, _ := w.dial(w.workers["w1"])
	for i, of := range []struct{ says, counts uint64 }{{1000, 0}, {1002, 2}, {1 << 63, 2 + 4096}} {
		raw, err := proto.Marshal(&fleetv1.Beat{Epoch: "an-epoch", Number: uint64(i + 1), Free: int32(i), Slots: int32(i + 1), Refused: of.says, LeaseMs: 2000})
		if err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "it is heard", func() bool {
			if err := conn.Publish(link.WorkerBeat("w1"), raw); err != nil { // one may come before the caller listens
				t.Fatal(err)
			}
			known := w.fleet.Workers()
			return len(known) == 1 && known[0].Slots == i+1
		})
		if got := w.fleet.Refused(); got != of.counts {
			t.Errorf("it says %d, and %d are counted", of.says, got)
		}
	}
}
