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
	t.Parallel()
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
	cut := api.Output{Stdout: api.StreamOutput{Head: "begin", Tail: "end\n", DroppedBytes: 7}}
	for name, one := range map[string]struct {
		result api.Result
		want   string
	}{
		"stdout":     {api.Result{Output: api.Output{Stdout: api.StreamOutput{Head: "out\n"}}}, "out\n"},
		"cut":        {api.Result{Output: cut}, "begin\n[... 7 bytes dropped ...]\nend\n"},
		"content":    {api.Result{Output: cut, Content: []api.Content{{Type: "text", Text: "said"}}}, "said"},
		"a picture":  {api.Result{Output: cut, Content: []api.Content{{Type: "blob"}}}, ""},
		"structured": {api.Result{Output: cut, Structured: json.RawMessage(`{}`)}, ""},
		"null":       {api.Result{Output: cut, Structured: json.RawMessage(`null`)}, "begin\n[... 7 bytes dropped ...]\nend\n"},
		"nothing":    {api.Result{}, ""},
	} {
		if got := one.result.Text(); got != one.want {
			t.Errorf("%s: %q, want %q", name, got, one.want)
		}
	}
	long := api.Result{Status: api.StatusOK, Output: api.Output{Stdout: api.StreamOutput{Head: strings.Repeat("é", 1<<20)}}}
	if n := len([]rune(long.Display())); n > 2001 {
		t.Errorf("%d characters are displayed", n)
	}
}
