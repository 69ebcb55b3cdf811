package fleet_test

import (
	"context"
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// reads opens what a caller answers.
func reads(t *testing.T, curve *seal.Curve, reply *fleetv1.Answer) supervisor.Answer {
	values, err := curve.Open(reply.GetAnswer(), reply.GetXkey())
	if err != nil {
		t.Error(err)
		return supervisor.Answer{}
	}
	var a supervisor.Answer
	if err := json.Unmarshal([]byte(values[0]), &a); err != nil {
		t.Error(err)
	}
	return a
}

// asks is a frame with a question of the tool.
func asks(t *testing.T) *fleetv1.Frame {
	raw, err := json.Marshal(supervisor.Question{ID: "q", Prompt: "The password?", Secret: true})
	if err != nil {
		t.Error(err)
	}
	return dataOf(1, &fleetv1.Data{What: &fleetv1.Data_Question{Question: &fleetv1.Question{Number: 1, Question: raw}}})
}

func answered(value string) func(context.Context, supervisor.Question) supervisor.Answer {
	return func(context.Context, supervisor.Question) supervisor.Answer {
		return supervisor.Answer{Value: json.RawMessage(value)}
	}
}

func newCurve(t *testing.T) *seal.Curve {
	t.Helper()
	curve, err := seal.NewCurve()
	if err != nil {
		t.Fatal(err)
	}
	return curve
}

// An answer is not sealed for a key that the worker has not signed: an engine may have put its
// own in that one's place.
func TestAnAnswerIsForTheWorkerAlone(t *testing.T) {
	t.Parallel()
	w, curve, got := newWorld(t, "w1"), newCurve(t), make(chan supervisor.Answer, 100)
	w.liar(func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
		switch {
		case o.Attempt != nil:
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Ready{Ready: &fleetv1.Ready{Xkey: curve.Public()}}})
		case c.GetGo() != nil:
			reply(asks(t))
		case c.GetAnswer() != nil:
			got <- reads(t, curve, c.GetAnswer())
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Gone{Gone: &fleetv1.Gone{}}})
		}
	})
	r := shell("true")
	r.Ask = answered(`"swordfish"`)
	w.call(r)
	if a := <-got; a.Value != nil || a.Denied != api.OutcomeFailed {
		t.Errorf("it is told %s, %s", a.Value, a.Denied)
	}
}

// An answer waits for the worker's key: the frame with that may be lost, as of a call that is
// told to start with its offer.
func TestAnAnswerWaitsForTheWorkersKey(t *testing.T) {
	t.Parallel()
	w, curve, got := newWorld(t, "w1"), newCurve(t), make(chan supervisor.Answer, 100)
	key, err := fleet.ReadKey(w.workers["w1"])
	if err != nil {
		t.Fatal(err)
	}
	given := make(chan struct{})
	w.liar(func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
		switch {
		case o.Attempt != nil:
			reply(asks(t))
		case c.GetQuery() != nil:
			<-given
			signature, err := key.SignCurve(c.Attempt.Epoch, curve.Public())
			if err != nil {
				t.Error(err)
			}
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Started{Started: &fleetv1.Started{Ready: &fleetv1.Ready{Xkey: curve.Public(), Signature: signature}}}})
		case c.GetAnswer() != nil:
			got <- reads(t, curve, c.GetAnswer())
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Gone{Gone: &fleetv1.Gone{}}})
		}
	})
	r := shell("true")
	r.Tool.Idempotent = true
	r.Ask = func(ctx context.Context, q supervisor.Question) supervisor.Answer {
		close(given)
		return answered(`"swordfish"`)(ctx, q)
	}
	w.call(r)
	if a := <-got; string(a.Value) != `"swordfish"` {
		t.Errorf("it is told %s, %s", a.Value, a.Denied)
	}
}

// A result that comes long after its call is over is acknowledged, or its worker would send it
// again and again. What is said of a call under way is that one's alone.
func TestALateResultIsAcknowledged(t *testing.T) {
	t.Parallel()
	w, acked := newWorld(t, "w1"), make(chan uint64, 100)
	epochs := make(chan string, 100)
	w.liar(func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
		switch {
		case o.GetAttempt().GetSerial() == 1:
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Never{Never: &fleetv1.Never{Why: fleetv1.Why_WHY_CEILING}}})
			epochs <- o.Attempt.Epoch
		case o.Attempt != nil:
			epochs <- o.Attempt.Epoch
		case c.GetAck() != nil:
			acked <- c.Attempt.Serial
		}
	})
	w.call(shell("true"))
	epoch := <-epochs
	open := w.fleet.Start(t.Context(), shell("true"))
	<-epochs
	conn, _ := w.dial(w.workers["w1"])
	for _, serial := range []uint64{2, 99, 1} {
		f := dataOf(1, &fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: []byte("{}")}})
		f.Epoch, f.Serial = epoch, serial
		raw, err := proto.Marshal(f)
		if err == nil {
			err = conn.Publish(link.FrameSubject(w.key.Public(), "w1", "forgotten"), raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if serial := <-acked; serial != 1 {
		t.Errorf("a result of attempt %d is acknowledged", serial)
	}
	open.Abort(api.ReasonUser)
	await(t, open.Done())
}
