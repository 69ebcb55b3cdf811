package supervisor_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/plugin/wirejson"
	"github.com/toolhost/toolhost/supervisor"
)

var odd = []string{"130", "5000", "9998", "20000", "1000000", "twice", "twiceEscaped", "huge", "long", "halfKeys"}

func dropped(r *api.Result) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, "structured_dropped: ") })
}

// passes: all that is told of the call can be read by everybody.
func passes(t *testing.T, r *api.Result) {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if clean, err := wirejson.Clean(raw); err != nil || string(clean) != string(raw) {
		t.Errorf("the result as a whole: %v", err)
	}
}

func TestOddJSONOfATool(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	for _, what := range odd {
		t.Run(what, func(t *testing.T) {
			structured := call(t, host, hostileRequest("json-structured-"+what))
			wantStatus(t, structured, api.StatusOK)
			if structured.Structured != nil || structured.Text() != "kept " || !dropped(structured) {
				t.Errorf("structured %.40s, text %q, warnings %q", structured.Structured, structured.Text(), structured.Warnings)
			}
			passes(t, structured)
			content := call(t, host, hostileRequest("json-content-"+what))
			wantStatus(t, content, api.StatusOK)
			if len(content.Content) > 3 || !strings.HasPrefix(content.Text(), `kept {"`) || !dropped(content) {
				t.Errorf("%d parts, %.40q, warnings %q", len(content.Content), content.Text(), content.Warnings)
			}
			passes(t, content)
			promised := call(t, host, hostileRequest("json-promised-"+what))
			wantStatus(t, promised, api.StatusToolError)
			if promised.Reason != "output" || promised.Structured != nil || promised.Text() != "kept " || !dropped(promised) || !strings.Contains(promised.ToolError.Message, "output schema") {
				t.Errorf("reason %q, error %v, warnings %q", promised.Reason, promised.ToolError, promised.Warnings)
			}
			passes(t, promised)
			asked := hostileRequest("json-ask-" + what)
			asked.Ask = func(context.Context, supervisor.Question) supervisor.Answer {
				t.Error("somebody was asked")
				return supervisor.Answer{}
			}
			if r := call(t, host, asked); !strings.Contains(r.Text(), "the question's schema cannot be passed on") {
				t.Errorf("%s: %q", r.Status, r.Text())
			}
		})
	}
	for what, want := range map[string]string{"half": `{"a":"\ufffd"}`, "tiny": `{"a":1e-400,"b":-0}`, "126": string(oddJSON("126"))} {
		r := call(t, host, hostileRequest("json-promised-"+what))
		wantStatus(t, r, api.StatusOK)
		if string(r.Structured) != want || dropped(r) {
			t.Errorf("%s: %s, warnings %q", what, r.Structured, r.Warnings)
		}
		passes(t, r)
	}
}

func TestOddArguments(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for _, what := range odd {
		r := call(t, host, request("echo", `{"text":`+string(oddJSON(what)[:min(len(oddJSON(what)), 900_000)])+`}`))
		wantStatus(t, r, api.StatusInvalidArgs)
	}
	meta := request("echo", `{}`)
	meta.Meta = oddJSON("5000")
	wantStatus(t, call(t, host, meta), api.StatusInvalidArgs)
}

// Secrets that are names of members become equal where they are hidden.
func TestHiddenNamesAreNoTwins(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := hostileRequest("json-structured-secrets")
	r.Secrets = []supervisor.Secret{{Variable: "ONE", Value: "first-secret-value"}, {Variable: "TWO", Value: "second-secret-value"}}
	got := call(t, host, r)
	wantStatus(t, got, api.StatusOK)
	if strings.Contains(string(got.Structured), "secret-value") || len(got.Structured) == 0 {
		t.Errorf("%s", got.Structured)
	}
	passes(t, got)
}
