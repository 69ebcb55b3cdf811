package mcpserver

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/supervisor"
)

// A tool without an output schema has the structured value that it gives, and
// else none.
func TestReceiptIsNoStructuredContent(t *testing.T) {
	for structured, want := range map[string]string{"": "null", "null": "null", `{"n":1}`: `{"n":1}`, `[1]`: `[1]`, `"x"`: `"x"`} {
		r := supervisor.Verdict{Status: api.StatusOK, Tool: "x"}.Result()
		r.Content, r.Structured = []api.Content{{Type: "text", Text: "ok"}}, json.RawMessage(structured)
		if out := present(r, outputCheck{}, "2025-11-25", nil); out.StructuredContent != nil && structured != `{"n":1}` {
			t.Errorf("%s: structuredContent %v for a client that knows objects only", structured, out.StructuredContent)
		}
		out := present(r, outputCheck{}, newest, nil)
		if got, _ := json.Marshal(out.StructuredContent); string(got) != want || text(out) != "ok" {
			t.Errorf("%s: structuredContent %s, text %q", structured, got, text(out))
		}
		if own := execution(t, out); own.Status != api.StatusOK || len(own.Content) != 0 {
			t.Errorf("%s: receipt %+v", structured, own)
		}
	}
}

// An error of a wrapped server's tool has the structured value that came with it; what else
// went wrong has none.
func TestAnErrorHasItsStructuredContent(t *testing.T) {
	for status, want := range map[api.Status]string{api.StatusToolError: `{"code":7}`, api.StatusTimeout: "null", api.StatusOK: "null"} {
		r := supervisor.Verdict{Status: status, Tool: "x"}.Result()
		r.ServerResult.Meta = json.RawMessage(`{"structuredContent":{"code":7},"isError":true}`)
		if status == api.StatusToolError {
			r.ToolError = &api.ToolError{Kind: "error", Message: "no"}
		}
		out := present(r, outputCheck{}, newest, nil)
		if got, _ := json.Marshal(out.StructuredContent); string(got) != want || out.IsError != (status != api.StatusOK) {
			t.Errorf("%s: structuredContent %s, want %s; isError %t", status, got, want, out.IsError)
		}
	}
}

// A receipt is bounded, whatever there is to tell; the content is not in it.
func TestReceiptIsBounded(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	long := strings.Repeat("\x01y", 1<<20)
	for name, fill := range map[string]func(r *api.Result){
		"content":    func(r *api.Result) { r.Content = []api.Content{{Type: "text", Text: long}} },
		"output":     func(r *api.Result) { r.Output.Stdout.Head, r.Output.Stderr.Tail = long, long },
		"structured": func(r *api.Result) { r.Structured = json.RawMessage(`["` + strings.Repeat("y", 1<<20) + `"]`) },
		"no JSON":    func(r *api.Result) { r.Structured = json.RawMessage(`{`) },
		"message":    func(r *api.Result) { r.Message = long },
		"error": func(r *api.Result) {
			r.ToolError = &api.ToolError{Kind: "error", Message: long, Stack: long}
		},
		"files":    func(r *api.Result) { r.Files = slices.Repeat([]api.File{{Path: "some/file"}}, 1000) },
		"warnings": func(r *api.Result) { r.Warnings = slices.Repeat([]string{"a warning"}, 10_000) },
		"sandbox":  func(r *api.Result) { r.Sandbox.Read = slices.Repeat([]string{"/some/folder"}, 10_000) },
		"words": func(r *api.Result) {
			r.CallID, r.Tool, r.Reason, r.Timing.SourceDetail = long, long, api.Reason(long), long
		},
		"advice": func(r *api.Result) { r.Retry.Hint, r.Limits.Pids = long, 7 },
	} {
		for _, status := range []api.Status{api.StatusOK, api.StatusTimeout} {
			r := supervisor.Verdict{Status: status, Tool: "x"}.Result()
			r.Timing.ElapsedMs = 5
			fill(r)
			out := present(r, outputCheck{}, newest, nil)
			raw, _ := json.Marshal(out.Meta)
			if own := execution(t, out); len(raw) > maxReceiptBytes+100 || own.Status != status || own.Timing.ElapsedMs != 5 || strings.Contains(string(raw), "yyyyyyyy") {
				t.Errorf("%s, %s: %d bytes: %.300s", name, status, len(raw), raw)
			}
		}
	}
}
