package main

import (
	"testing"

	"github.com/toolhost/toolhost/internal/exit"
	"github.com/toolhost/toolhost/supervisor"
)

// As toolhost has them.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status supervisor.Status
		reason string
		want   int
	}{
		{supervisor.StatusStartFailed, "start", exit.Usage},
		{supervisor.StatusStartFailed, "not_executable", exit.Usage},
		{supervisor.StatusPolicyViolation, "sha256", exit.Usage},
		{supervisor.StatusStartFailed, "sandbox", exit.Host},
		{supervisor.StatusStartFailed, "server", exit.Failed},
		{supervisor.StatusInvalidArgs, "arguments", exit.Usage},
		{supervisor.StatusTimeout, "deadline", exit.Timeout},
		{supervisor.StatusToolError, "error", exit.Failed},
	} {
		if got := exitCode(&supervisor.Result{Status: test.status, Reason: test.reason}); got != test.want {
			t.Errorf("%s, %s: %d, want %d", test.status, test.reason, got, test.want)
		}
	}
}
