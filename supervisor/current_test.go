package supervisor_test

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// What a call uses can be seen while it runs, and not after.
func TestCurrent(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	c := host.Start(t.Context(), request("burn", `{}`))
	wait.Until(t, "CPU time and memory are in use", func() bool {
		now, ok := c.Current()
		return ok && now.CPU > 50*time.Millisecond && now.MemoryBytes > 1<<20 && now.Pids > 1
	})
	c.Abort(api.ReasonUser)
	c.Abort(api.ReasonUser)
	c.Result()
	if now, ok := c.Current(); ok {
		t.Errorf("a call that is over uses %+v", now)
	}
}
