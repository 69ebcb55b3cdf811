package supervisor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// Only the soft budget makes a call one that overran; what had begun to end it is
// told to the model.
func TestResultAfterAnAbortCounts(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	events := make(chan api.Event, 100)
	r := request("late", `{"n":5}`)
	r.Grace, r.Events = 20*time.Second, events
	running := host.Start(t.Context(), r)
	waitFor(t, events, api.EventStarted)
	running.Abort(api.ReasonUser)
	result := running.Result()
	wantStatus(t, result, api.StatusOK)
	if result.Overran || result.Kill.Cause != "abort" || !strings.HasPrefix(result.Message, `[NOTE] Tool "late" was aborted after `) || !strings.Contains(result.Message, "(user). Its result came all the same, and is complete.") {
		t.Errorf("overran %v, cause %q, message %q", result.Overran, result.Kill.Cause, result.Message)
	}
}

// A soft budget that passes in the grace period has passed.
func TestSoftBudgetPassesInTheGrace(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	events := make(chan api.Event, 100)
	r := request("stream", `{"n":1}`) // it goes at SIGKILL only
	r.Timeouts = append(within(time.Minute), budget.Ask{Layer: budget.LayerGlobal, Rank: budget.RankFlag, TimeoutUnset: true, Soft: 3 * time.Second, Detail: "test"})
	r.Grace, r.Events = 20*time.Second, events
	running := host.Start(t.Context(), r)
	waitForMessage(t, running, events, "flushed")
	running.Abort(api.ReasonUser)
	waitFor(t, events, api.EventOverran)
	running.Abort(api.ReasonUser)
	if result := running.Result(); !result.Overran || result.Status != api.StatusCancelled {
		t.Errorf("overran %v, %s", result.Overran, result.Status)
	}
}
