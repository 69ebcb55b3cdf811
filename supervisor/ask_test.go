package supervisor_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// While a human is waited for, the call's own time stands still.
func TestAQuestionStopsTheClock(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	r := request("ask", `{}`)
	r.Timeouts = within(10 * time.Second)
	const wait = 11 * time.Second
	asked := make(chan supervisor.Question, 1)
	r.Ask = func(ctx context.Context, q supervisor.Question) supervisor.Answer {
		asked <- q
		select {
		case <-time.After(wait): // the human thinks for longer than the call may take
		case <-ctx.Done():
		}
		return supervisor.Answer{Value: json.RawMessage("true")}
	}
	result := call(t, host, r)
	wantStatus(t, result, api.StatusOK)
	if q := <-asked; q.Prompt != "really?" {
		t.Errorf("question %+v", q)
	}
	if result.Timing.HumanWaitMs < wait.Milliseconds() || result.Overran {
		t.Errorf("timing %+v, overran %v", result.Timing, result.Overran)
	}
}

func TestADeniedQuestionIsTheToolsToHandle(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for _, reason := range []string{"user", "timeout"} {
		r := request("ask", `{}`)
		r.Ask = func(context.Context, supervisor.Question) supervisor.Answer { return supervisor.Answer{Denied: reason} }
		wantStatus(t, call(t, host, r), api.StatusToolError)
	}
}

// A call that is ended while it asks does not wait for the human.
func TestAbortWhileAsking(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("ask", `{}`)
	asking := make(chan struct{})
	r.Ask = func(ctx context.Context, _ supervisor.Question) supervisor.Answer {
		close(asking)
		<-ctx.Done()
		return supervisor.Answer{Denied: "cancelled"}
	}
	c := host.Start(t.Context(), r)
	<-asking
	c.Abort(api.ReasonUser)
	wantStatus(t, c.Result(), api.StatusCancelled)
}
