package fleet_test

import (
	"sync"
	"testing"

	"github.com/toolhost/toolhost/api"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A start that was told with the offer, and given up, is aborted when it is heard of, and what
// comes of it is acknowledged: while another worker makes the call, and when that is over.
func TestAStartThatWasGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1", "w2")
	var mu sync.Mutex
	var first, second func(*fleetv1.Frame)
	var serial uint64
	aborts, acks := 0, 0
	lie := func(reply func(*fleetv1.Frame), o *fleetv1.Offer, c *fleetv1.Control) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case o.Attempt != nil && first == nil:
			first, serial = reply, o.Attempt.Serial
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Unknown{Unknown: &fleetv1.Unknown{}}})
		case o.Attempt != nil:
			reply(ready())
		case c.GetGo() != nil:
			second = reply
			reply(&fleetv1.Frame{What: &fleetv1.Frame_Started{Started: &fleetv1.Started{}}})
		case c.GetAttempt().GetSerial() != serial:
		case c.GetAbort() != nil:
			aborts++
		case c.GetAck() != nil:
			acks++
		}
	}
	w.liarAs("w1", lie)
	w.liarAs("w2", lie)
	isAnswered := func() {
		t.Helper()
		mu.Lock()
		aborts, acks = 0, 0
		mu.Unlock()
		wait.Until(t, "the first one is aborted and acknowledged", func() bool {
			mu.Lock()
			defer mu.Unlock()
			if aborts > 0 && acks > 0 {
				return true
			}
			first(dataOf(1, &fleetv1.Data{What: &fleetv1.Data_Event{Event: []byte(`{"kind":"tool_started"}`)}})) // again and again, as workers do
			return false
		})
	}
	r := shell("true")
	r.ID, r.Tool.Idempotent = "own", true
	c := w.fleet.Start(t.Context(), r)
	wait.Until(t, "another one has it", func() bool { mu.Lock(); defer mu.Unlock(); return second != nil })
	isAnswered()
	second(dataOf(1, &fleetv1.Data{What: &fleetv1.Data_ResultEnd{ResultEnd: []byte(`{"callId":"own","status":"ok"}`)}}))
	await(t, c.Done())
	isAnswered()
	if got := c.Result(); got.Status != api.StatusOK {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	select {
	case <-c.Gone():
		t.Error("it is said that nothing of it runs")
	default:
	}
}
