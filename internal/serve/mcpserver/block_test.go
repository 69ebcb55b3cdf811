package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// A wrapped server's structured value that is too long is not left out in silence.
func TestALongStructuredValue(t *testing.T) {
	t.Parallel()
	long := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", maxStructuredBytes))
	line := fmt.Sprintf("[the structured result is left out: it has %d bytes, at most 1048576 can be passed on]", len(long))
	for _, version := range []string{"2025-11-25", newest} {
		for _, status := range []api.Status{api.StatusOK, api.StatusToolError} {
			r := supervisor.Verdict{Status: status, Tool: "x"}.Result()
			r.Content = []api.Content{{Type: "text", Text: "said", Block: true}}
			if status == api.StatusOK {
				r.Structured = json.RawMessage(long)
			} else {
				r.ToolError = &api.ToolError{Kind: "error", Message: "said"}
				r.ServerResult.Meta = json.RawMessage(`{"structuredContent":` + long + `}`)
			}
			out := present(r, outputCheck{wrapped: true}, version, nil)
			if got := text(out); got != "said\n"+line || out.StructuredContent != nil {
				t.Errorf("%s, %s: %.200q", version, status, got)
			}
		}
	}
}
