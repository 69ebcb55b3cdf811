package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// structured is the result of a wrapped server's tool, or its error, with a structured value.
func structured(status api.Status, value string) *api.Result {
	r := supervisor.Verdict{Status: status, Tool: "x"}.Result()
	r.Content = []api.Content{{Type: "text", Text: "said", Block: true}}
	if status == api.StatusOK {
		r.Structured = json.RawMessage(value)
		return r
	}
	r.ToolError = &api.ToolError{Kind: "error", Message: "said"}
	r.ServerResult.Meta = json.RawMessage(`{"structuredContent":` + value + `}`)
	return r
}

// A wrapped server's structured value that is too long is not left out in silence.
func TestALongStructuredValue(t *testing.T) {
	t.Parallel()
	long := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", maxStructuredBytes))
	line := fmt.Sprintf("[the structured result is left out: it has %d bytes, at most 1048576 can be passed on]", len(long))
	for _, version := range []string{"2025-11-25", newest} {
		for _, status := range []api.Status{api.StatusOK, api.StatusToolError} {
			out := present(structured(status, long), outputCheck{wrapped: true}, version, nil)
			if got := text(out); got != "said\n"+line || out.StructuredContent != nil {
				t.Errorf("%s, %s: %.200q", version, status, got)
			}
		}
	}
}

// To clients that know objects only, another value is text, also beside an error.
func TestStructuredValuesAsText(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{`[1.0]`: "said\n[1.0]", `{"a":1}`: "said", "null": "said"} {
		for _, status := range []api.Status{api.StatusOK, api.StatusToolError} {
			out := present(structured(status, value), outputCheck{wrapped: true}, "2025-11-25", nil)
			if got := text(out); got != want {
				t.Errorf("%s, %s: %q, want %q", value, status, got, want)
			}
		}
	}
}
