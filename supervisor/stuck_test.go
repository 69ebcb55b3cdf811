package supervisor_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/unkillable"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// A3: a process that no signal ends, as one in state D, costs its call neither
// the answer nor the truth. Its slot stays taken until it is gone.
func TestUnkillable(t *testing.T) {
	host := newHost(t, supervisor.Config{Admission: supervisor.Admission{Running: 1, Queue: 1, Wait: 50 * time.Millisecond}})
	mark := "STUCK=" + rand.Text()
	r := request("wait", `{}`)
	events := make(chan api.Event, 100)
	r.Timeouts, r.Env, r.Events = within(20*time.Second), []string{mark}, events
	running := host.Start(t.Context(), r)
	for started := false; !started; { // the process that says what tools there are has ended by then
		select {
		case e := <-events:
			started = e.Kind == api.EventStarted
		case <-running.Done():
			t.Fatalf("the call has ended: %+v", running.Result())
		}
	}
	var stuck int
	wait.Until(t, "the tool runs", func() bool {
		found := processes.WithEnvironment(mark)
		if len(found) > 0 {
			stuck = found[0]
		}
		return stuck != 0
	})
	thaw := unkillable.Freeze(t, stuck)
	running.Abort(api.ReasonUser)
	result := running.Result()
	if result.Status != api.StatusUnkillable || result.Kill.Survivors == 0 || result.Kill.Cause != "abort" {
		t.Errorf("status %s, kill %+v", result.Status, result.Kill)
	}
	if !strings.HasPrefix(result.Message, "[CANCELLED] ") || !strings.Contains(result.Message, "could not be killed") || !strings.Contains(result.Message, "survived") {
		t.Errorf("message %q", result.Message)
	}
	if refused := host.Call(t.Context(), request("echo", `{}`)); refused.Status != api.StatusOverloaded {
		t.Errorf("beside an unkillable call in the only slot: %s", refused.Status)
	}
	wait.Until(t, "the call is told as stuck", func() bool { return host.Host().Stuck == 1 }) // somewhat after its answer
	select {
	case <-running.Gone():
		t.Error("what is stuck is told to be gone")
	default:
	}
	thaw()
	<-running.Gone()
	wait.Until(t, "the slot is free", func() bool { return host.Call(t.Context(), request("echo", `{}`)).OK() })
	if stuck := host.Host().Stuck; stuck != 0 {
		t.Errorf("%d calls are stuck", stuck)
	}
}
