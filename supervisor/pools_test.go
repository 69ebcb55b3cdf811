package supervisor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// Calls of a pool leave the other slots to others: what waits in it takes none.
func TestAPoolLeavesSlotsToOthers(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{Admission: supervisor.Admission{Running: 2, Queue: 8, Wait: time.Minute}})
	pooled := func(tool string) supervisor.Request {
		r := request(tool, `{}`)
		r.Pool, r.Timeouts = supervisor.Pool{Name: "heavy", Running: 1}, within(time.Minute)
		return r
	}
	ctx, cancel := context.WithCancel(t.Context())
	var calls []testCall
	for range 3 {
		calls = append(calls, host.Start(ctx, pooled("silent")))
	}
	wait.Until(t, "one runs and two wait", func() bool { h := host.Host(); return h.Running == 1 && h.Waiting == 2 })
	if h := host.Health(); h.Running != 1 || h.Waiting != 2 {
		t.Errorf("a model reads %+v", h)
	}
	for range 3 {
		wantStatus(t, host.Call(t.Context(), request("echo", `{}`)), api.StatusOK)
	}
	cancel()
	for _, call := range calls {
		wantStatus(t, call.Result(), api.StatusCancelled)
	}
	wait.Until(t, "nothing waits", func() bool { h := host.Host(); return h.Running+h.Waiting == 0 })
	wantStatus(t, host.Call(t.Context(), pooled("echo")), api.StatusOK)
}

// What no slot of a pool became free for names the pool's setting.
func TestAFullPoolNamesItsSetting(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{Admission: supervisor.Admission{Running: 2, Queue: 8, Wait: time.Millisecond}})
	pooled := request("silent", `{}`)
	pooled.Pool, pooled.Timeouts = supervisor.Pool{Name: "toolhost.yaml:3", Running: 1}, within(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := host.Start(ctx, pooled)
	wait.Until(t, "one runs", func() bool { return host.Host().Running == 1 })
	r := host.Call(t.Context(), pooled)
	if wantStatus(t, r, api.StatusOverloaded); !strings.Contains(r.Message, "1 call is running, as many as running: 1 (toolhost.yaml:3) lets run") {
		t.Error(r.Message)
	}
	cancel()
	first.Result()
}
