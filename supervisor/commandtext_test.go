package supervisor_test

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// shell is a plain command.
func shell(script string) supervisor.Request {
	return supervisor.Request{Command: &supervisor.Command{Argv: []string{"/bin/sh", "-c", script}}}
}

// The usual host gives a call a time, and reads what it wrote.
func TestTimeoutAndTextOfACommand(t *testing.T) {
	needShell(t)
	host := newHost(t, supervisor.Config{})
	ok := shell("echo one; echo two >&2; echo three")
	ok.Timeout = 20 * time.Second
	r := host.Call(t.Context(), ok)
	wantStatus(t, r, api.StatusOK)
	if r.Text() != "one\nthree\n" || r.Display() != r.Text() || r.Timing.Source != string(budget.LayerCall) || *r.Timing.TimeoutMs != 20_000 || len(r.Warnings) != 0 {
		t.Errorf("text %q, display %q, %+v, %q", r.Text(), r.Display(), r.Timing, r.Warnings)
	}
	slow := shell("echo begun; exec sleep 100")
	slow.Timeout = 2 * time.Second
	r = host.Call(t.Context(), slow)
	wantStatus(t, r, api.StatusTimeout)
	if r.Text() != "begun\n" || !r.Partial || *r.Timing.TimeoutMs != 2000 {
		t.Errorf("text %q, %+v", r.Text(), r.Timing)
	}
}
