package supervisor_test

import (
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// What is idle ends; what is in use goes on, and is there for later calls.
func TestEndIdle(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	idle := kept("count", `{}`, supervisor.Keep{})
	wantServed(t, call(t, host, idle), "fresh", 1)
	used := kept("silent", `{}`, supervisor.Keep{})
	used.Env = []string{"OTHER=1"}
	running := host.Start(t.Context(), used)
	eventually(t, "both are kept", func() bool { return host.Host().Kept == 2 })
	host.EndIdle()
	eventually(t, "the idle one ends", func() bool { return host.Host().Kept == 1 })
	wantServed(t, call(t, host, idle), "fresh", 1)
	running.Abort(api.ReasonUser)
	wantStatus(t, running.Result(), api.StatusCancelled)
}
