package supervisor_test

import (
	"context"
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
