package format

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toolhost/toolhost/api"
)

// png is the smallest picture.
var png = func() []byte {
	raw, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		panic(err)
	}
	return raw
}()

func text1(s string) []api.Content { return []api.Content{{Type: "text", Text: s}} }

// failed is a result that is not ok, as the supervisor makes it.
func failed(status api.Status, code string, reason api.Reason, message string) *api.Result {
	return &api.Result{
		Tool: "search", Status: status, Code: code, Reason: reason, Message: message,
		Retry: api.Retry{SideEffects: "possible"}, Kill: api.Kill{Stage: "none", Signals: []string{}},
	}
}

func ok(content ...api.Content) *api.Result {
	return &api.Result{Tool: "search", Status: api.StatusOK, Code: "OK", Content: content, Kill: api.Kill{Stage: "none", Signals: []string{}}}
}

func timeoutWithPartial() *api.Result {
	r := failed(api.StatusTimeout, "DEADLINE_EXCEEDED", "deadline",
		`[TIMEOUT] Tool "search" was stopped after 2s, its limit. All 3 of its processes were killed. Side effects may have happened. `+
			`Its partial output follows: 22 bytes of content. Next: ask for more time (up to 1h) or take smaller steps.`)
	r.Partial, r.Content = true, text1("main.go:3: one result\n")
	r.Timing = api.Timing{RunMs: 1980, ElapsedMs: 2004, TimeoutMs: new(int64(2000)), Profile: "tool_call"}
	r.Kill = api.Kill{Stage: "kill", Cause: "deadline", Signals: []string{"SIGTERM", "SIGKILL"}, Reaped: 3, LatencyUs: 812}
	r.Usage = api.Usage{CPUUserMs: 1200, MemoryPeakBytes: 9 << 20, PidsPeak: 5}
	r.Retry = api.Retry{Retryable: true, SideEffects: "possible", SuggestedTimeoutMs: new(int64(8000)), Hint: "ask for more time or do less in one call"}
	return r
}

func commandWithDrops(r *api.Result) *api.Result {
	r.Tool = "make"
	r.Output.Stdout = api.StreamOutput{Head: "cc -c a.c\ncc -c", Tail: "z.c\ndone\n", SeenBytes: 5_000_023, KeptBytes: 23, DroppedBytes: 5_000_000}
	r.Output.Stderr = api.StreamOutput{Head: "a.c:1: warning\n", SeenBytes: 15, KeptBytes: 15}
	return r
}

func clamped(r *api.Result) *api.Result {
	r.Timing.Clamped, r.Warnings = true, []string{"timeout 2h is above the maximum of 1h: 1h is used"}
	return r
}

func structured(value string, content ...api.Content) *api.Result {
	r := ok(content...)
	r.Structured = json.RawMessage(value)
	return r
}

var resultCases = map[string]func() *api.Result{
	"ok": func() *api.Result {
		return ok(api.Content{Type: "text", Text: "two results"}, api.Content{Type: "json", JSON: json.RawMessage(`{ "line": 3 }`)},
			api.Content{Type: "resource_link", Name: "main.go", URI: "file:///w/main.go", MIMEType: "text/x-go"})
	},
	"ok_nothing":             func() *api.Result { return ok() },
	"ok_structured":          func() *api.Result { return structured(`{ "matches": [ ] }`) },
	"ok_structured_list":     func() *api.Result { return structured(`[1, 2]`) },
	"ok_structured_and_text": func() *api.Result { return structured(`{"matches":[]}`, text1("No match.")...) },
	"ok_clamped":             func() *api.Result { return clamped(ok(text1("done")...)) },
	"ok_warning": func() *api.Result {
		r := ok(text1("done")...)
		r.Warnings = []string{"usage is incomplete"}
		return r
	},
	"ok_image": func() *api.Result {
		return ok(api.Content{Type: "text", Text: "before"}, api.Content{Type: "blob", MIMEType: "image/png", Data: png}, api.Content{Type: "text", Text: "after"})
	},
	"ok_blobs": func() *api.Result {
		return ok(api.Content{Type: "blob", MIMEType: "application/pdf", Data: []byte("%PDF")}, api.Content{Type: "blob", MIMEType: "audio/wav", Data: []byte("RIFF")},
			api.Content{Type: "blob", MIMEType: "image/png", Data: []byte("no picture")})
	},
	"command_ok": func() *api.Result { return commandWithDrops(ok()) },
	"command_failed": func() *api.Result {
		return commandWithDrops(failed(api.StatusToolError, "UNKNOWN", "exit", `[FAILED] Tool "make" failed after 1.2s: exit status 2. Side effects may have happened.`))
	},
	"timeout": timeoutWithPartial,
	"timeout_streams": func() *api.Result {
		r := timeoutWithPartial()
		r.Output.Stdout.Head, r.Output.Stderr.Head = "printed\n", "scanning"
		return clamped(r)
	},
	"cancelled": func() *api.Result {
		return failed(api.StatusCancelled, "CANCELLED", "user", "[CANCELLED] Turn aborted by user.")
	},
	"denied": func() *api.Result {
		r := failed(api.StatusDenied, "PERMISSION_DENIED", "turn_budget", `[DENIED] Tool "search" was not called: the turn has no time left. It has changed nothing.`)
		r.Decider = "turnBudget"
		return r
	},
	"oom": func() *api.Result {
		return failed(api.StatusOOM, "RESOURCE_EXHAUSTED", "memory", `[OOM] Tool "search" ran out of memory after 0.8s: its limit is 67108864 bytes for all its processes. Its one process was killed. Side effects may have happened.`)
	},
	// The API refuses a message with an image in a result that has is_error.
	"failed_image": func() *api.Result {
		r := failed(api.StatusToolError, "UNKNOWN", "error", `[FAILED] Tool "shot" failed after 0.01s: the page did not answer. Side effects may have happened.`)
		r.Content = []api.Content{{Type: "blob", MIMEType: "image/png", Data: png}}
		return r
	},
	"tool_error": func() *api.Result {
		r := failed(api.StatusToolError, "UNKNOWN", "error", `[FAILED] Tool "search" failed after 0.01s: no such folder: src. Side effects may have happened.`)
		r.ToolError = &api.ToolError{Kind: "error", Message: "no such folder: src"}
		return r
	},
	"long_error": func() *api.Result {
		r := failed(api.StatusToolError, "UNKNOWN", "error", `[FAILED] Tool "search" failed after 0.01s: compile failed:. Side effects may have happened. Its partial output follows: 7 bytes of content.`)
		r.ToolError = &api.ToolError{Kind: "error", Message: "compile failed:\na.go:1: no package\n"}
		r.Content = text1("package")
		return r
	},
	"no_message": func() *api.Result { return failed(api.StatusCollateral, "ABORTED", "", "") },
}

// A note is in no text of the tool's, and what settings have brought about is in
// none.
func TestNotesAreApart(t *testing.T) {
	r := ok(text1("done")...)
	r.Warnings = []string{"55s is used", "usage is incomplete"}
	r.Timing.SettingsWarnings = r.Warnings[:1]
	for _, p := range providers {
		raw, err := p.Results([]Call{{ID: "call_1", Tool: "search"}}, []*api.Result{r})
		shown, _, _ := strings.Cut(string(raw), `"_meta"`)
		apart := p.Name() == "openai" || p.Name() == "openai-chat" || p.Name() == "gemini" || strings.Contains(shown, `"text":"done"`)
		if err != nil || strings.Contains(shown, "55s") || !apart || !strings.Contains(shown, "[NOTE] usage is incomplete") {
			t.Errorf("%s: %v, %s", p.Name(), err, raw)
		}
	}
	r.Warnings = r.Warnings[:1]
	if got := plain(r); got != "done" {
		t.Errorf("%q", got)
	}
}

// An error that the message has only the beginning of is there as a whole, once.
func TestWholeErrors(t *testing.T) {
	const message = `[FAILED] Tool "search" failed after 0.01s: `
	long := strings.Repeat("ä", 600)
	for name, test := range map[string]struct {
		message, said string
		content       []api.Content
		want          string
	}{
		"one line":      {message + "one.", "one\n", nil, message + "one."},
		"lines":         {message + "one.", "one\ntwo", nil, message + "one.\n\n[error]\none\ntwo"},
		"long":          {message + long[:1000] + "….", long, nil, message + long[:1000] + "….\n\n[error]\n" + long},
		"no first line": {message + ".", "\ntwo", nil, message + ".\n\n[error]\ntwo"},
		"in content":    {message + "one.", "one\ntwo…", text1("one\ntwo\nthree"), message + "one.\n\none\ntwo\nthree"},
	} {
		r := failed(api.StatusToolError, "UNKNOWN", "error", test.message)
		r.ToolError, r.Content = &api.ToolError{Kind: "error", Message: test.said}, test.content
		if got := plain(r); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestResults(t *testing.T) {
	for name, result := range resultCases {
		t.Run(name, func(t *testing.T) {
			var files []txtar.File
			for _, p := range providers {
				raw, err := p.Results([]Call{{ID: "call_1", Tool: "search"}}, []*api.Result{result()})
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, txtar.File{Name: p.Name() + ".json", Data: pretty(t, raw)})
			}
			golden(t, filepath.Join("testdata", "results", name+".txtar"), files...)
		})
	}
}

// anthropicSchema is what the Messages API asks of a message with tool results.
const anthropicSchema = `{
	"type": "object", "required": ["role", "content"], "additionalProperties": false,
	"properties": {
		"role": {"const": "user"},
		"content": {"type": "array", "items": {
			"type": "object", "required": ["type", "tool_use_id", "content"], "additionalProperties": false,
			"properties": {
				"type": {"const": "tool_result"},
				"tool_use_id": {"type": "string", "pattern": "^[a-zA-Z0-9_-]+$"},
				"is_error": {"type": "boolean"},
				"content": {"type": "array", "minItems": 1, "items": {"oneOf": [{"$ref": "#/$defs/text"}, {"$ref": "#/$defs/image"}]}}
			}
		}}
	},
	"$defs": {
		"text": {
			"type": "object", "required": ["type", "text"], "additionalProperties": false,
			"properties": {"type": {"const": "text"}, "text": {"type": "string", "pattern": "\\S"}}
		},
		"image": {
			"type": "object", "required": ["type", "source"], "additionalProperties": false,
			"properties": {"type": {"const": "image"}, "source": {
				"type": "object", "required": ["type", "media_type", "data"], "additionalProperties": false,
				"properties": {
					"type": {"const": "base64"}, "data": {"type": "string", "minLength": 1},
					"media_type": {"enum": ["image/png", "image/jpeg", "image/gif", "image/webp"]}
				}
			}}
		}
	}
}`

func validator(t *testing.T) func(raw []byte) error {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(anthropicSchema), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(raw []byte) error {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return err
		}
		return resolved.Validate(value)
	}
}

// All results of a turn are in one message of the user's, in call order.
func TestAnthropicMessage(t *testing.T) {
	var calls []Call
	var results []*api.Result
	for name, result := range resultCases {
		calls, results = append(calls, Call{ID: "toolu_" + name, Tool: "search"}), append(results, result())
	}
	raw, err := anthropic{}.Results(calls, results)
	if err != nil {
		t.Fatal(err)
	}
	if err := validator(t)(raw); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	var message anthropicMessage
	if err := json.Unmarshal(raw, &message); err != nil || len(message.Content) != len(calls) {
		t.Fatalf("%d results, %v", len(message.Content), err)
	}
	for i, block := range message.Content {
		if block.ToolUseID != calls[i].ID || block.IsError == results[i].OK() {
			t.Errorf("result %d: %+v for %s, %s", i, block, calls[i].ID, results[i].Status)
		}
	}
}

func TestSchemaOfTheTestRefuses(t *testing.T) {
	validate := validator(t)
	for _, raw := range []string{
		`{"role":"assistant","content":[]}`,
		`{"role":"user","content":[{"type":"text","text":"x"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":" "}]}]}`,
	} {
		if validate([]byte(raw)) == nil {
			t.Errorf("%s is taken", raw)
		}
	}
}

func TestNoCalls(t *testing.T) {
	for name, want := range map[string]string{"anthropic": `{"role":"user","content":[]}`, "openai": `[]`, "openai-chat": `[]`, "mcp": `[]`} {
		p, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := p.Results(nil, nil); err != nil || string(raw) != want {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
	}
}

// A success that came after something had begun to end its call is a success for
// every provider, and says what that was.
func TestASuccessInTheGraceTellsEveryProvider(t *testing.T) {
	for _, structured := range []json.RawMessage{nil, json.RawMessage(`{"n":5}`)} {
		r := ok(text1("just in time")...)
		if r.Structured = structured; structured != nil {
			r.Content = nil
		}
		r.Kill.Cause = "abort"
		r.Message = `[NOTE] Tool "search" was aborted after 2s (user). Its result came all the same, and is complete.`
		for _, p := range providers {
			raw, err := p.Results([]Call{{ID: "1", Tool: "search", Arguments: json.RawMessage("{}")}}, []*api.Result{r})
			if err != nil {
				t.Fatal(err)
			}
			if text := string(raw); !strings.Contains(text, "was aborted after 2s (user)") || strings.Contains(text, `rror":true`) {
				t.Errorf("%s: %s", p.Name(), text)
			}
		}
	}
}
