package supervisor_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/supervisor"
)

// A call's own limit of open files that leaves its sandbox none is not the host's fault.
func TestTooFewOpenFiles(t *testing.T) {
	host := newHost(t, nothingWaits)
	for name, r := range map[string]supervisor.Request{
		"plugin":  request("echo", `{"text":"x"}`),
		"command": {Command: &supervisor.Command{Argv: []string{"true"}}},
		"network": {Command: &supervisor.Command{Argv: []string{"true"}}, Sandbox: &supervisor.Policy{Grants: []network.Grant{{Host: "a.test"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if r.Command != nil {
				needShell(t)
			}
			r.Limits.OpenFiles = 5
			wantUnstarted(t, host, r, api.ReasonLimits, "limit openFiles: 5 are too few for its sandbox: give 16 or more")
			r.Limits.OpenFiles = 16
			wantStatus(t, call(t, host, r), api.StatusOK)
		})
	}
	if err := host.Ready(); err != nil {
		t.Error(err)
	}
}

// wantUnstarted: the call is not started, for a reason that its message tells in full.
func wantUnstarted(t *testing.T, host testHost, r supervisor.Request, reason api.Reason, message string) {
	t.Helper()
	result := call(t, host, r)
	wantStatus(t, result, api.StatusStartFailed)
	if result.Reason != reason || result.Retry.Retryable || !strings.Contains(result.Message, message) {
		t.Errorf("reason %s, retryable %v: %s, want %s and %q", result.Reason, result.Retry.Retryable, result.Message, reason, message)
	}
}

// What bounds a call together with others is checked as its own limits are, whatever the
// others are called.
func TestWrongShares(t *testing.T) {
	host := newHost(t, nothingWaits)
	for _, test := range []struct {
		message string
		set     func(*supervisor.Request)
	}{
		{`the limits of the share "" together: memory limit 1 is out of range: take 65536 to`, func(r *supervisor.Request) { r.Share.MemoryBytes = 1 }},
		{`the limits of the share "k\n/.." together: CPU percent -1 is out of range: take 1 to`, func(r *supervisor.Request) { r.Share = supervisor.Share{Key: "k\n/..", CPUPercent: -1} }},
		{`the share "" has negative bounds (running -1, waiting 0): give 1 or more, or 0 for none`, func(r *supervisor.Request) { r.Share.Running = -1 }},
		{`the share "ci" has negative bounds (running 0, waiting -1): give 1 or more, or 0 for none`, func(r *supervisor.Request) { r.Share = supervisor.Share{Key: "ci", Waiting: -1} }},
		{`the pool "heavy" has -1 slots: give 1 or more, or 0 for no bound`, func(r *supervisor.Request) { r.Pool = supervisor.Pool{Name: "heavy", Running: -1} }},
	} {
		r := request("echo", `{"text":"x"}`)
		test.set(&r)
		wantUnstarted(t, host, r, api.ReasonLimits, test.message)
	}
}
