package daemon

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// post sends something to /mcp as an agent.
func (a *agent) post(method, session, body string) string {
	a.t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(a.t), method, a.url+mcpPath, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	return response.Status + " " + response.Header.Get("Content-Type") + " " + string(raw)
}

// Over MCP another's session is one that is not there, whatever is sent to it, and so is
// the turn of an MCP call over HTTP.
func TestOthersThingsAreNotThereOverMCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "access: {nobody: {uids: [65533]}}\n")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	owner, other := bearerOf(t, d, "owner"), bearerOf(t, d, "other")
	session, err := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "test"}, nil).Connect(wait.Context(t), &mcpsdk.StreamableClientTransport{
		Endpoint: d.tcp() + mcpPath, HTTPClient: &http.Client{Transport: bearing{owner.token}}, MaxRetries: -1,
	}, &mcpsdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	go func() { _, _ = session.CallTool(t.Context(), endless()) }()
	var turn api.Turn
	wait.Until(t, "the call runs", func() bool {
		active := mustActive(t, owner)
		if len(active) == 1 && len(active[0].CurrentTools) == 1 && w.left() > 0 {
			turn = active[0]
		}
		return turn.TurnID != ""
	})
	none := strings.Repeat("X", len(session.ID()))
	for _, method := range []string{
		"initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/read", "resources/subscribe",
		"resources/unsubscribe", "subscriptions/listen", "completion/complete", "logging/setLevel", "notifications/cancelled", "notifications/initialized",
		"notifications/roots/list_changed", "notifications/progress", "nosuch/method",
	} {
		id := `"id":1,`
		if strings.HasPrefix(method, "notifications/") {
			id = ""
		}
		message := fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":{"name":"lines","requestId":1,"uri":"x://y","level":"info"}}`, id, method)
		theirs, missing := other.post("POST", session.ID(), message), other.post("POST", none, message)
		if theirs != missing || !strings.HasPrefix(theirs, "404 ") {
			t.Errorf("%s: %s, in none %s", method, theirs, missing)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		if theirs, missing := other.post(method, session.ID(), ""), other.post(method, none, ""); theirs != missing || !strings.HasPrefix(theirs, "404 ") {
			t.Errorf("%s: %s, of none %s", method, theirs, missing)
		}
	}

	call := turn.CurrentTools[0].CallID
	for _, path := range []string{"GET /api/turns/TURN", "GET /api/turns/TURN/events", "POST /api/turns/TURN/abort", "POST /api/turns/TURN/abort-tool/" + call, "POST /api/turns/TURN/end", "GET /api/history/turns/TURN/events", "GET /api/history/turns/TURN/calls/" + call} {
		method, path, _ := strings.Cut(path, " ")
		ask := func(id string) string {
			r, err := http.NewRequestWithContext(wait.Context(t), method, d.tcp()+strings.ReplaceAll(path, "TURN", id), nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+other.token)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			raw, _ := io.ReadAll(response.Body)
			return response.Status + string(bytes.ReplaceAll(raw, []byte(id), []byte("TURN")))
		}
		if theirs, missing := ask(turn.TurnID), ask(strings.Repeat("Z", len(turn.TurnID))); theirs != missing || !strings.HasPrefix(theirs, "404 ") {
			t.Errorf("%s %s: %s, of none %s", method, path, theirs, missing)
		}
	}
	if len(mustActive(t, owner)) != 1 || w.left() == 0 {
		t.Error("the owner's call is gone")
	}
	if list := mustActive(t, other); len(list) != 0 {
		t.Errorf("the other one sees %+v", list)
	}
}

// A request with two tokens is not taken by one of them: which one a proxy has looked at
// is not known here.
func TestTwoTokensInOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	one := bearerOf(t, d, "one")
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.tcp(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /api/whoami HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAuthorization: Bearer x\r\n\r\n", strings.TrimPrefix(d.tcp(), "http://"), one.token)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Error(response.Status)
	}
}
