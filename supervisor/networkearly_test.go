package supervisor_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/supervisor"
)

// A call that has taken a process is known, and can be ended, before the network of that is
// served; and it hears of the process's end.
func TestACallBeforeItsNetworkIsServed(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	wantStatus(t, call(t, host, reaching(t, l, with("a.test:2222"), "echo a.test:2222 x")), api.StatusOK) // the relay is there
	r, mark := waiting(t, l)
	early := func(end func(c testCall, taken []int)) *api.Result {
		host.Prestart([]supervisor.Request{r})
		awaitParked(t, host, 1)
		taken := processes.WithEnvironment(mark)
		relay := relayPID(t)
		signalRelay(t, relay, syscall.SIGSTOP)
		c := host.Start(t.Context(), r)
		eventually(t, "the call's process is known", func() bool { _, known := c.Current(); return known })
		end(c, taken)
		_ = syscall.Kill(relay, syscall.SIGCONT) // it may have been ended for being late
		result := c.Result()
		if result.Instance != api.InstancePrestarted {
			t.Errorf("it had a %s process", result.Instance)
		}
		<-c.Gone()
		host.Prestart(nil)
		eventually(t, "nothing is left", func() bool { return len(processes.WithEnvironment(mark)) == 0 })
		return result
	}

	aborted := early(func(c testCall, _ []int) { c.Abort(api.ReasonUser) })
	if wantStatus(t, aborted, api.StatusCancelled); len(aborted.Warnings) > 0 {
		t.Errorf("warnings %q", aborted.Warnings)
	}
	died := early(func(c testCall, taken []int) {
		for _, pid := range taken {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-c.Done() // or the tool might be given its call
	})
	if wantStatus(t, died, api.StatusStartFailed); !strings.Contains(died.Message, "ended before it was given the call") {
		t.Error(died.Message)
	}
	wantStatus(t, call(t, host, r), api.StatusOK)
}
