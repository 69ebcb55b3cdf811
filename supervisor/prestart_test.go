package supervisor_test

import (
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// ahead is a request for processes that wait for their calls.
func ahead(tool string, n int) supervisor.Request {
	r := request(tool, `{}`)
	r.Limits.Pids = 500
	r.Prestart = n
	return r
}

// awaitParked waits until so many processes wait.
func awaitParked(t *testing.T, host *supervisor.Supervisor, n int) {
	t.Helper()
	eventually(t, "the processes wait", func() bool { return host.Prestarted().Processes == n })
}

// A process that was started before its call serves that one, and no other.
func TestAPrestartedProcessServesOneCall(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := ahead("count", 2)
	host.Prestart([]supervisor.Request{r})
	for range times(3, 10, 200) {
		awaitParked(t, host, 2)
		got := call(t, host, r)
		wantServed(t, got, "prestarted", 1)
		if got.Usage.CPUUserMs+got.Usage.CPUSystemMs > 1000 || got.Kill.Stage != "none" {
			t.Errorf("usage %+v, kill %+v", got.Usage, got.Kill)
		}
	}
	if p := host.Prestarted(); p.Missed != 0 || p.Died != 0 {
		t.Errorf("%+v", p)
	}
	_ = api.StatusOK
}
