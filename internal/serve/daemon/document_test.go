package daemon

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/openapi"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// What a daemon with real tools answers is valid by the document that it serves:
// results of each kind, events as they happen and as they are on record, lists, metrics.
func TestTheDocumentOfADaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "  slow: {command: [sleep, \"60\"], timeout: 300ms, grace: 100ms, class: all}\n  fails: {command: [\"false\"], class: all}\n  careful: {command: [echo, x], mode: ask}\n")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	d.tcp()
	wires := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.Socket)
	}}
	t.Cleanup(wires.CloseIdleConnections)
	by := &http.Client{Transport: wires}
	ask := func(want int, method, path, body string, accept ...string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(wait.Context(t), method, "http://localhost"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		r.Header["Accept"] = accept
		response, err := by.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		raw, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != want {
			t.Errorf("%s %s: %s, want %d, %v\n%s", method, path, response.Status, want, err, raw)
		}
		return string(raw)
	}
	doc, err := openapi.Parse([]byte(ask(200, "GET", "/api/openapi.json", "")))
	if err != nil {
		t.Fatal(err)
	}
	by.Transport = doc.Transport(wires, func(err error) { t.Error(err) })

	ask(201, "POST", "/api/turns", `{"turnId":"t","headless":true,"maxCalls":20}`)
	calls := `{"calls":[{"id":"1","tool":"work","arguments":{"text":"x","repeat":3}},{"id":"2","tool":"slow"},{"id":"3","tool":"fails"},{"id":"4","tool":"careful"},{"id":"5","tool":"nosuch"},{"id":"6","tool":"work","arguments":{"nosuch":1}}]}`
	results := ask(200, "POST", "/api/turns/t/calls", calls)
	for _, status := range []string{"ok", "timeout", "tool_error", "denied", "invalid_args"} {
		if !strings.Contains(results, `"status":"`+status+`"`) {
			t.Errorf("no result is %s: %s", status, results)
		}
	}
	if streamed := ask(200, "POST", "/api/turns/t/calls", strings.ReplaceAll(calls, `"id":"`, `"id":"s`), "text/event-stream"); !strings.Contains(streamed, "event: results") {
		t.Errorf("a batch as a stream: %s", streamed)
	}
	ask(200, "POST", "/api/turns/t/model", `{"streaming":true}`)
	for _, path := range []string{
		"/api/health", "/api/ready", "/api/whoami", "/api/tools", "/api/tools?name=lines", "/api/turns/active", "/api/turns/t", "/api/interactions", "/api/approvals", "/metrics",
		"/api/history/turns", "/api/history/calls?turn=t&status=timeout&limit=5", "/api/history/turns/t/events", "/api/history/turns/t/calls/1", "/api/history/turns/t/calls/2",
	} {
		ask(200, "GET", path, "")
	}
	link := regexp.MustCompile(`#link=(\w+)`).FindStringSubmatch(ask(201, "POST", "/api/login-links", ""))
	ask(200, "POST", "/api/login", `{"link":"`+link[1]+`"}`)
	ask(403, "POST", "/api/login", `{"link":"`+link[1]+`"}`)
	ask(200, "POST", "/api/turns/t/end", "")
	if events := ask(200, "GET", "/api/turns/t/events?after=2", "", "text/event-stream"); !strings.Contains(events, "event: turn_end") {
		t.Errorf("the record as a stream: %s", events)
	}
	ask(404, "GET", "/api/turns/t", "")
	ask(404, "POST", "/api/interactions/none/answer", `{"approve":true}`)
	ask(404, "POST", "/api/approvals/none/revoke", "")
	ask(409, "POST", "/api/turns", `{"turnId":"t"}`)
	ask(400, "POST", "/api/turns", `{"nosuch":1}`)
	ask(405, "DELETE", "/api/turns/t", "")
	ask(404, "GET", "/api/nosuch", "")
}
