package supervisor

import (
	"strings"
	"testing"
	"time"
)

// A message says what is known: how what an adapter runs has ended, and times
// as people would ask for them.
func TestMessages(t *testing.T) {
	crash := &Result{Status: StatusCrashed, Tool: "t", ToolError: &ToolError{Message: "MCP server \"s\" exited with status 3\nits stderr"}}
	alone := &Result{Status: StatusCrashed, Tool: "t", Exit: Exit{Signal: "SIGSEGV"}}
	late := &Result{Status: StatusTimeout, Tool: "t", Retry: Retry{SuggestedTimeoutMs: new(int64(54_998))}}
	soon := &Result{Status: StatusTimeout, Tool: "t", Retry: Retry{SuggestedTimeoutMs: new(int64(1_500))}}
	for _, test := range []struct {
		result *Result
		limit  time.Duration
		want   string
	}{
		{crash, time.Hour, `without a result (MCP server "s" exited with status 3).`},
		{alone, time.Hour, "without a result (SIGSEGV)."},
		{late, 54_998 * time.Millisecond, "(up to 54s)"},
		{soon, 1500 * time.Millisecond, "(up to 1.5s)"},
	} {
		if got := message(test.result, outcome{}, test.limit); !strings.Contains(got, test.want) {
			t.Errorf("%q, want %q in it", got, test.want)
		}
	}
}
