package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/openapi"
)

// What the document does not have is seen: in each part of an answer, in each part of a
// stream, and in what was taken.
func TestWrongAnswersAreSeen(t *testing.T) {
	t.Parallel()
	doc, err := documented()
	if err != nil {
		t.Fatal(err)
	}
	const (
		failure  = `{"error":{"code":"busy","message":"m","remedy":"r"}}`
		done     = `{"ok":true}`
		event    = `{"seq":1,"time":"2026-01-02T03:04:05Z","turnId":"t","kind":"turn_start"}`
		frame    = ": hello\n\nid: 1\nevent: turn_start\ndata: " + event + "\n\n"
		watch    = "/api/turns/t/events"
		batch    = "/api/turns/t/calls"
		asJSON   = "application/json"
		question = `{"kind":"confirm","prompt":"?"}`
	)
	for _, test := range []struct {
		name, method, path, sent string
		status                   int
		kind, body               string
		want                     string // part of what is said; empty if all is right
	}{
		{"right", "POST", "/api/turns/t/abort", "", 200, asJSON, done, ""},
		{"a field more", "POST", "/api/turns/t/abort", "", 200, asJSON, `{"ok":true,"more":1}`, "more"},
		{"a field less", "POST", "/api/turns/t/abort", "", 200, asJSON, `{}`, "ok"},
		{"another type of value", "POST", "/api/turns/t/abort", "", 200, asJSON, `{"ok":1}`, "boolean"},
		{"not JSON", "POST", "/api/turns/t/abort", "", 200, asJSON, `{`, "not JSON"},
		{"another type of body", "POST", "/api/turns/t/abort", "", 200, "text/html", done, "text/html"},
		{"no type of body", "POST", "/api/turns/t/abort", "", 200, "", done, "not a type"},
		{"another status", "POST", "/api/turns/t/abort", "", 202, asJSON, done, "status is not supported"},
		{"an error", "POST", "/api/turns/t/abort", "", 404, asJSON, failure, ""},
		{"an error that it cannot have", "POST", "/api/turns/t/abort", "", 409, asJSON, failure, "status is not supported"},
		{"an error of another form", "POST", "/api/turns/t/abort", "", 404, asJSON, done, "not a Failure"},
		{"an error without its header", "POST", "/api/login", `{"link":"x"}`, 429, asJSON, failure, "Retry-After"},
		{"another path", "GET", "/api/nothing", "", 404, asJSON, failure, ""},
		{"another path that is there", "GET", "/api/nothing", "", 200, asJSON, done, "not in the document"},
		{"another method", "DELETE", "/api/turns/t", "", 405, asJSON, failure, ""},
		{"another path, in plain text", "GET", "/api/nothing", "", 404, "text/plain", "no", "not JSON"},
		{"what is not a time", "GET", watch, "", 200, eventStream, "event: turn_start\ndata: {\"seq\":1,\"time\":\"yesterday\",\"turnId\":\"t\",\"kind\":\"turn_start\"}\n\n", "date-time"},
		{"an object", "GET", "/api/openapi.json", "", 200, asJSON, `[]`, "object"},
		{"a stream", "GET", watch, "", 200, eventStream, frame + "event: gap\ndata: {\"turnId\":\"t\",\"fromSeq\":1,\"toSeq\":2}\n\n", ""},
		{"an event of another form", "GET", watch, "", 200, eventStream, frame + "event: tool_log\ndata: {\"seq\":2}\n\n", "not a Event"},
		{"a gap as an event", "GET", watch, "", 200, eventStream, "event: gap\ndata: " + event + "\n\n", "not a Gap"},
		{"a line that is not one of an event", "GET", watch, "", 200, eventStream, "retry: 5\n\n", "retry"},
		{"half an event", "GET", watch, "", 200, eventStream, frame + "event: tool_log\ndata: {\"se", "not JSON"},
		{"the results of a batch", "POST", batch, `{"calls":[]}`, 200, eventStream, "event: results\ndata: {\"results\":[]}\n\n", ""},
		{"other results", "POST", batch, `{"calls":[]}`, 200, eventStream, "event: results\ndata: {}\n\n", "not a Results"},
		{"lines", "GET", "/api/history/turns/t/events", "", 200, ndjson, event + "\n" + event + "\n", ""},
		{"another line", "GET", "/api/history/turns/t/events", "", 200, ndjson, event + "\n{}\n", "not a Event"},
		{"what was taken", "POST", "/api/turns/t/interactions", question, 200, asJSON, `{"interactionId":"i","outcome":"denied"}`, ""},
		{"more than may be taken", "POST", "/api/turns/t/interactions", `{"kind":"confirm","prompt":"?","more":1}`, 200, asJSON, `{"interactionId":"i","outcome":"denied"}`, "more"},
		{"a parameter of another type", "GET", "/api/history/turns?limit=many", "", 200, asJSON, `{"turns":[]}`, "limit"},
	} {
		seen := ""
		h := doc.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if test.kind != "" {
				w.Header().Set("Content-Type", test.kind)
			}
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.body))
		}), func(err error) { seen += err.Error() })
		r := httptest.NewRequest(test.method, test.path, strings.NewReader(test.sent))
		if test.sent != "" {
			r.Header.Set("Content-Type", asJSON)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if (seen == "") != (test.want == "") || !strings.Contains(seen, test.want) {
			t.Errorf("%s: %q, want %q", test.name, seen, test.want)
		}
	}
	if _, err := openapi.Parse([]byte(`{"openapi":"3.1.0","paths":{}}`)); err == nil {
		t.Error("a document without a title is taken")
	}
}
