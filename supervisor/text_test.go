package supervisor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// A timeout of the request's own is clamped as any.
func TestTimeoutOfARequest(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for asked, want := range map[time.Duration]int64{0: 60_000, time.Nanosecond: 1000, -time.Second: 1000, 100 * time.Hour: 3_600_000, budget.Infinite: 3_600_000, 5 * time.Second: 5000} {
		one := request("echo", `{"text":"hello"}`)
		one.Timeout = asked
		r := call(t, host, one)
		wantStatus(t, r, api.StatusOK)
		if *r.Timing.TimeoutMs != want || (len(r.Warnings) > 0) != (asked != 0 && asked != 5*time.Second) {
			t.Errorf("%s: %d ms, want %d; warnings %q", asked, *r.Timing.TimeoutMs, want, r.Warnings)
		}
	}
	bounded := request("echo", `{"text":"hello"}`)
	bounded.Timeout = 20 * time.Second
	bounded.Timeouts = []budget.Ask{{Layer: budget.LayerClient, TimeoutUnset: true, Max: 3 * time.Second}, {Layer: budget.LayerCall, Timeout: 4 * time.Second}}
	if r := call(t, host, bounded); *r.Timing.TimeoutMs != 3000 {
		t.Errorf("%d ms, want 3000", *r.Timing.TimeoutMs)
	}
}

func TestTextOfAResult(t *testing.T) {
	cut := supervisor.Output{Stdout: supervisor.StreamOutput{Head: "begin", Tail: "end\n", DroppedBytes: 7}}
	for name, one := range map[string]struct {
		result supervisor.Result
		want   string
	}{
		"stdout":     {supervisor.Result{Output: supervisor.Output{Stdout: supervisor.StreamOutput{Head: "out\n"}}}, "out\n"},
		"cut":        {supervisor.Result{Output: cut}, "begin\n[... 7 bytes dropped ...]\nend\n"},
		"content":    {supervisor.Result{Output: cut, Content: []supervisor.Content{{Type: "text", Text: "said"}}}, "said"},
		"a picture":  {supervisor.Result{Output: cut, Content: []supervisor.Content{{Type: "blob"}}}, ""},
		"structured": {supervisor.Result{Output: cut, Structured: json.RawMessage(`{}`)}, ""},
		"null":       {supervisor.Result{Output: cut, Structured: json.RawMessage(`null`)}, "begin\n[... 7 bytes dropped ...]\nend\n"},
		"nothing":    {supervisor.Result{}, ""},
	} {
		if got := one.result.Text(); got != one.want {
			t.Errorf("%s: %q, want %q", name, got, one.want)
		}
	}
	long := supervisor.Result{Status: api.StatusOK, Output: supervisor.Output{Stdout: supervisor.StreamOutput{Head: strings.Repeat("é", 1<<20)}}}
	if n := len([]rune(long.Display())); n > 2001 {
		t.Errorf("%d characters are displayed", n)
	}
}
