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
