package outcome

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// A message says what is known: how what an adapter runs has ended, and times
// as people would ask for them.
func TestMessages(t *testing.T) {
	crash := &api.Result{Status: api.StatusCrashed, Tool: "t", ToolError: &api.ToolError{Message: "MCP server \"s\" exited with status 3\nits stderr"}}
	alone := &api.Result{Status: api.StatusCrashed, Tool: "t", Exit: api.Exit{Signal: "SIGSEGV"}}
	late := &api.Result{Status: api.StatusTimeout, Tool: "t", Retry: api.Retry{SuggestedTimeoutMs: new(int64(54_998))}}
	soon := &api.Result{Status: api.StatusTimeout, Tool: "t", Retry: api.Retry{SuggestedTimeoutMs: new(int64(1_500))}}
	full := &api.Result{Status: api.StatusTimeout, Tool: "t", Kill: api.Kill{Stage: "term", Cause: "deadline", Reaped: 2}, Usage: api.Usage{OOMKills: 1}}
	for _, test := range []struct {
		result *api.Result
		limit  time.Duration
		want   string
	}{
		{crash, time.Hour, `without a result (MCP server "s" exited with status 3).`},
		{alone, time.Hour, "without a result (SIGSEGV)."},
		{late, 54_998 * time.Millisecond, "(up to 54s)"},
		{soon, 1500 * time.Millisecond, "(up to 1.5s)"},
		{full, time.Hour, "All 2 of its processes have ended, by SIGTERM or for want of memory."},
	} {
		if got := message(test.result, outcome{}, test.limit, false); !strings.Contains(got, test.want) {
			t.Errorf("%q, want %q in it", got, test.want)
		}
	}
}

// More time is advised where the tool has an argument by which to ask for it.
func TestMoreTimeIsAskedByAnArgument(t *testing.T) {
	for _, asked := range []bool{false, true} {
		r := worded(&api.Result{Tool: "t"}, Evidence{Cause: CauseDeadline, Reason: "deadline", Ran: true}, Terms{Timeout: 2 * time.Second, Max: time.Hour, AsksTime: asked})
		got := r.Message
		if strings.Contains(got, "Next: ask for more time (up to 1h)") != asked || !strings.Contains(got, "smaller steps.") || strings.Contains(r.Retry.Hint, "more time") != asked {
			t.Errorf("asks %t: %s (%s)", asked, got, r.Retry.Hint)
		}
		if r.Retry.SuggestedTimeoutMs == nil {
			t.Errorf("asks %t: nothing is suggested to the host", asked)
		}
	}
}

// What is bound to end the same way is not to be called again as it is, wherever
// that was found out.
func TestWhatIsToBeCorrectedIsNotRetryable(t *testing.T) {
	for reason := range startHints {
		want := map[api.Reason]bool{
			api.ReasonStart: true, api.ReasonServer: true, api.ReasonSlow: true, api.ReasonHost: true,
			api.ReasonSandbox: true, api.ReasonAdapter: true, api.ReasonSecrets: true,
		}[reason]
		refused := outcomeFor(refuse(api.StatusStartFailed, reason))
		if verdict := Retryable(&api.Result{Status: api.StatusStartFailed, Reason: reason}); refused.Retry.Retryable != want || verdict != want {
			t.Errorf("%s: retryable %t and %t, want %t", reason, refused.Retry.Retryable, verdict, want)
		}
	}
	for _, kind := range []pluginv1.ToolError_Kind{pluginv1.ToolError_KIND_COMMAND_NOT_FOUND, pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE} {
		r := worded(&api.Result{Tool: "t"}, Evidence{Final: &pluginv1.Result{Error: &pluginv1.ToolError{Kind: kind}}, Ran: true}, Terms{Command: true})
		if r.Status != api.StatusStartFailed || r.Retry.Retryable || r.Retry.SideEffects != "none" {
			t.Errorf("%s: %s, %+v", kind, r.Status, r.Retry)
		}
	}
}

// A server that was not ready in time may be set up well.
func TestASlowServerIsGivenMoreTime(t *testing.T) {
	for said, want := range map[string]string{
		"has not answered initialize within 8s: " + text.MoreStartTime + "; it wrote to stderr: x": "Next: set a higher startTimeout, or see why the server is slow.",
		"exited with status 1": "Next: correct the server's set-up.",
	} {
		refused := Evidence{StartErr: Refuse(api.StatusStartFailed, api.ReasonServer, errors.New(said))}
		started := Evidence{Final: &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_START_FAILED, Message: said}}, Ran: true}
		for _, e := range []Evidence{refused, started} {
			if r := worded(&api.Result{Tool: "t"}, e, Terms{Adapter: true}); !strings.HasSuffix(r.Message, want) {
				t.Errorf("%q, want %q at its end", r.Message, want)
			}
		}
	}
}
