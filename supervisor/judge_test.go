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
			structured := call(t, host, unhurriedRequest("json-structured-"+what))
			wantStatus(t, structured, api.StatusOK)
			if structured.Structured != nil || structured.Text() != "kept " || !dropped(structured) {
				t.Errorf("structured %.40s, text %q, warnings %q", structured.Structured, structured.Text(), structured.Warnings)
			}
			passes(t, structured)
			content := call(t, host, unhurriedRequest("json-content-"+what))
			wantStatus(t, content, api.StatusOK)
			if len(content.Content) > 3 || !strings.HasPrefix(content.Text(), `kept {"`) || !dropped(content) {
				t.Errorf("%d parts, %.40q, warnings %q", len(content.Content), content.Text(), content.Warnings)
			}
			passes(t, content)
			promised := call(t, host, unhurriedRequest("json-promised-"+what))
			wantStatus(t, promised, api.StatusToolError)
			if promised.Reason != "output" || promised.Structured != nil || promised.Text() != "kept " || !dropped(promised) || !strings.Contains(promised.ToolError.Message, "output schema") {
				t.Errorf("reason %q, error %v, warnings %q", promised.Reason, promised.ToolError, promised.Warnings)
			}
			passes(t, promised)
			asked := unhurriedRequest("json-ask-" + what)
			asked.Ask = func(context.Context, supervisor.Question) supervisor.Answer {
				t.Error("somebody was asked")
				return supervisor.Answer{}
			}
			if r := call(t, host, asked); !strings.Contains(r.Text(), "the question cannot be passed on") || !dropped(r) {
				t.Errorf("%s: %q, warnings %q", r.Status, r.Text(), r.Warnings)
			}
		})
	}
	for what, want := range map[string]string{"half": `{"a":"\ufffd"}`, "tiny": `{"a":1e-400,"b":-0}`, "126": string(oddJSON("126"))} {
		r := call(t, host, unhurriedRequest("json-promised-"+what))
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
	for _, twice := range []string{"{\"text\":\"\xff\"}", "{\"text\":\"\xff\",\"text\":\"b\"}"} { // a byte must not hide what else is odd
		wantNotUTF8(t, call(t, host, request("echo", twice)))
		meta.Meta = json.RawMessage(twice)
		wantNotUTF8(t, call(t, host, meta))
	}
}

func wantNotUTF8(t *testing.T, r *api.Result) {
	t.Helper()
	if r.Status != api.StatusInvalidArgs || !strings.Contains(r.Message, "cannot be taken: the JSON is not UTF-8") {
		t.Errorf("%s: %s", r.Status, r.Message)
	}
}

// What an adapter adds to a result is left out where it is odd, with a warning, and
// only that.
func TestOddJSONBesideAResult(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	for _, what := range []string{"130", "5000", "twice", "huge", "long"} {
		t.Run(what, func(t *testing.T) {
			extra := call(t, host, hostileRequest("json-extra-"+what))
			wantStatus(t, extra, api.StatusOK)
			if last := extra.Content[len(extra.Content)-1]; len(extra.Warnings) != 2 || !dropped(extra) || !strings.HasPrefix(last.Text, `kept {"a`) {
				t.Errorf("content %.100v, warnings %q", extra.Content, extra.Warnings)
			}
			passes(t, extra)
			meta := call(t, host, hostileRequest("json-meta-"+what))
			wantStatus(t, meta, api.StatusOK)
			if string(meta.Meta) != `{"kept":1}` || len(meta.Warnings) != 3 || !dropped(meta) {
				t.Errorf("meta %.100s, warnings %q", meta.Meta, meta.Warnings)
			}
			rpc := call(t, host, hostileRequest("json-rpc-"+what))
			wantStatus(t, rpc, api.StatusToolError)
			if string(rpc.ToolError.RPC) != `{"code":-32000,"message":"no"}` || !dropped(rpc) {
				t.Errorf("error %.100s, warnings %q", rpc.ToolError.RPC, rpc.Warnings)
			}
			rounds := call(t, host, hostileRequest("json-rounds-"+what))
			wantStatus(t, rounds, api.StatusToolError)
			if !strings.Contains(rounds.ToolError.Message, "asks for what cannot be passed on: the ") || !dropped(rounds) {
				t.Errorf("error %v, warnings %q", rounds.ToolError, rounds.Warnings)
			}
			asked := hostileRequest("json-request-" + what)
			asked.Ask = func(context.Context, supervisor.Question) supervisor.Answer {
				t.Error("somebody was asked")
				return supervisor.Answer{}
			}
			if r := call(t, host, asked); !strings.Contains(r.Text(), "the question cannot be passed on") || !dropped(r) {
				t.Errorf("%s: %q, warnings %q", r.Status, r.Text(), r.Warnings)
			}
		})
	}
}

// Fields beside a text count as the text does.
func TestFieldsOfTextsCount(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	for size, cut := range map[string]bool{"300000": true, "1000000": false} { // a larger one is left out itself
		r := call(t, host, unhurriedRequest("fields-"+size))
		wantStatus(t, r, api.StatusOK)
		held := 0
		for _, c := range r.Content {
			held += c.Bytes()
		}
		counted := r.Output.Content
		if held > 1<<20+1000 || counted.KeptBytes > 1<<20 || (counted.DroppedBytes > 0) != cut || counted.SeenBytes != counted.KeptBytes+counted.DroppedBytes {
			t.Errorf("%s: %d bytes held, %+v", size, held, counted)
		}
		if cut && counted.SeenBytes < 20*300_000 || cut == dropped(r) || !cut && strings.Count(r.Text(), "hi") != 20 {
			t.Errorf("%s: %+v, text %q, warnings %q", size, counted, r.Text(), r.Warnings)
		}
	}
}

// All of them count as sent.
func TestFieldsOfTextsAreOutput(t *testing.T) {
	t.Parallel()
	r := hostileRequest("fields-1000000")
	r.Limits.OutputTotalBytes = 5_000_000
	wantStatus(t, call(t, newHost(t, supervisor.Config{}), r), api.StatusOutputLimit)
}

// What a binary says of itself goes to clients with each list.
func TestOddDescriptions(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	for _, what := range odd {
		if what == "1000000" {
			continue // a message of 4 MiB has no room for these
		}
		d, failed := host.Describe(t.Context(), hostileRequest("describe-odd-"+what))
		if failed != nil {
			t.Fatal(failed.Message)
		}
		for _, raw := range slices.Concat([][]byte{d.Tools[0].GetExtra(), d.Server.GetCapabilities()}, d.Server.GetPrompts(), d.Server.GetResources(), d.Server.GetTemplates()) {
			if string(raw) != `{"kept":1,"name":"x"}` {
				t.Errorf("%s: %.100s", what, raw)
			}
		}
		if all := strings.Join(d.Warnings, "\n"); len(d.Warnings) != 6 || strings.Count(all, "are left out: ") != 6 || len(d.Server.GetTemplates()) != 1 {
			t.Errorf("%s: %d templates, warnings %q", what, len(d.Server.GetTemplates()), d.Warnings)
		}
		if _, failed := host.Describe(t.Context(), hostileRequest("describe-inschema-"+what)); failed == nil || !strings.Contains(failed.Message, "input schema of tool") {
			t.Errorf("%s: %v", what, failed)
		}
	}
	d, failed := host.Describe(t.Context(), hostileRequest("describe-large"))
	if failed != nil {
		t.Fatal(failed.Message)
	}
	tool := d.Tools[0]
	if len(d.Version) > 2000 || len(tool.GetTitle()) > 2000 || len(tool.GetDescription()) > 70_000 || len(tool.GetExtra()) > 0 || len(d.Warnings) != 3 {
		t.Errorf("version %d, title %d, description %d, extra %d, warnings %q", len(d.Version), len(tool.GetTitle()), len(tool.GetDescription()), len(tool.GetExtra()), d.Warnings)
	}
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
