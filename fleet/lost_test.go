package fleet

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// The result of a lost call has the times that its caller knows, and the limits that it was
// sent with.
func TestWhatIsKnownOfALostCall(t *testing.T) {
	c := &remote{
		f: &Fleet{}, request: supervisor.Request{ID: "one", Limits: supervisor.Limits{Pids: 7}}, conversation: conversation{questions: map[uint32]*question{}},
		given: &attempt{id: &fleetv1.Attempt{Worker: "w1"}}, gone: &gone{api.ReasonUnreachable, "no"},
		started: &fleetv1.Started{TimeoutMs: 60_000, GraceMs: 1500},
	}
	c.times = times{began: now() - 9*time.Second, placed: now() - 8*time.Second, ran: now() - 6*time.Second}
	for number := range uint32(2) {
		c.asked(t.Context(), &fleetv1.Question{Number: number})
	}
	c.since -= 3 * time.Second
	c.settled(0)
	got := c.lost()
	about := func(name string, ms, want int64) {
		if ms < want || ms > want+1000 {
			t.Errorf("%s: %d ms, want %d", name, ms, want)
		}
	}
	about("queue", got.Timing.QueueMs, 1000)
	about("start", got.Timing.StartMs, 2000)
	about("run", got.Timing.RunMs, 6000)
	about("elapsed", got.Timing.ElapsedMs, 8000)
	about("a human who is still asked", got.Timing.HumanWaitMs, 3000)
	if c.settled(1); c.open != 0 || c.waited < 3*time.Second {
		t.Errorf("%d questions wait, and %s were waited", c.open, c.waited)
	}
	if got.Limits.Pids != 7 || got.Limits.MemoryBytes != supervisor.DefaultLimits().MemoryBytes || got.Timing.Profile != "tool_call" || got.Timing.GraceLimitMs != 1500 {
		t.Errorf("%+v %+v", got.Limits, got.Timing)
	}
	c.endQuestions()
}

// A call that is lost for a start which was given up names the worker of that, and not one that
// has refused the call later.
func TestWhoseCallIsLost(t *testing.T) {
	c := &remote{f: &Fleet{}, call: newCall("one"), request: supervisor.Request{ID: "one"}}
	for n, name := range []string{"w1", "w2"} {
		c.attempts = append(c.attempts, &attempt{of: c, n: n, id: &fleetv1.Attempt{Worker: name}})
	}
	first, _ := c.state.Offer(true)
	c.attempts[first].doubted = c.state.Silent(first)
	second, _ := c.state.Offer(false)
	c.state.Ready(second)
	c.given = c.attempts[second]
	c.state.Refused(second)
	c.state.Stop()
	c.end(t.Context())
	if got := c.call.Result(); got.Status != api.StatusLost || got.Where.Worker != "w1" || got.Where.StillRunning != "unknown" {
		t.Errorf("%+v %s", got.Where, got.Message)
	}
}
