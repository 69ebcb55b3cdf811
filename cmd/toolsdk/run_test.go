package main

import (
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/exit"
)

// As toolhost has them.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status api.Status
		reason api.Reason
		want   int
	}{
		{api.StatusStartFailed, "start", exit.Usage},
		{api.StatusStartFailed, "not_executable", exit.Usage},
		{api.StatusPolicyViolation, "sha256", exit.Usage},
		{api.StatusStartFailed, "sandbox", exit.Host},
		{api.StatusStartFailed, "server", exit.Failed},
		{api.StatusInvalidArgs, "arguments", exit.Usage},
		{api.StatusTimeout, "deadline", exit.Timeout},
		{api.StatusToolError, "error", exit.Failed},
	} {
		if got := exitCode(&api.Result{Status: test.status, Reason: test.reason}); got != test.want {
			t.Errorf("%s, %s: %d, want %d", test.status, test.reason, got, test.want)
		}
	}
}
