package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What is not a message is refused over HTTP as over a pipe.
func TestNonsenseOverHTTP(t *testing.T) {
	web := overHTTP(t, newServer(t, setup{}))
	for name, test := range map[string]struct {
		body   string
		status int
		id     string
		says   string
	}{
		"garbage":         {"garbage", 400, "null", "-32700"},
		"nothing":         {"", 400, "null", "-32700"},
		"key twice":       {`{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}`, 400, "7", "there twice"},
		"fraction":        {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, 400, "1.5", "neither"},
		"in batch":        {`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0"}]`, 400, "null", "-32600"},
		"empty batch":     {`[]`, 400, "null", "-32600"},
		"large":           {strings.Repeat(" ", maxMessageBytes) + "{}", 413, "null", "send less"},
		"unknown method":  {`{"jsonrpc":"2.0","id":7,"method":"nope"}`, 400, "7", "-32601"},
		"of two":          {`[{"jsonrpc":"2.0","id":7,"method":"nope"},{"jsonrpc":"2.0","id":8,"method":"ping"}]`, 400, "null", "-32601"},
		"no params":       {`{"jsonrpc":"2.0","id":"a","method":"tools/call"}`, 400, `"a"`, "-32602"},
		"bad answer":      {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","inputResponses":{"k":{"action":5}}}}`, 400, "7", "-32602,\"message\":\"params.inputResponses.k.action must be a string, not 5"},
		"no session":      {`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, 400, "7", "-32600,\"message\":\"tools/list without a session: begin one with initialize"},
		"two, no session": {`[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"info"}}]`, 400, "null", "-32600"},
	} {
		r, said := answerTo(t, web.HTTPClient, posted(t, web.Endpoint, test.body))
		var f struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   jsonrpc.Error   `json:"error"`
		}
		if err := json.Unmarshal(said, &f); err != nil || f.Version != "2.0" || string(f.ID) != test.id || f.Error.Message == "" {
			t.Errorf("%s: %v: %s", name, err, said)
		}
		if r.StatusCode != test.status || !strings.Contains(string(said), test.says) || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %s", name, r.StatusCode, r.Header, said)
		}
	}
}

func answerTo(t *testing.T, client *http.Client, r *http.Request) (*http.Response, []byte) {
	t.Helper()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, said
}

// A notification that nobody knows is nobody's fault: it is taken, and nothing comes of it,
// also in a batch.
func TestUnknownNotificationsOverHTTP(t *testing.T) {
	web := overHTTP(t, newServer(t, setup{}))
	const unknown = `{"jsonrpc":"2.0","method":"notifications/nope","params":[1]}`
	for name, test := range map[string]struct {
		body, version string
		status        int
	}{
		"older":      {unknown, "2025-11-25", 202},
		"newest":     {unknown, newest, 202},
		"no version": {unknown, "", 202},
		"batch":      {"[" + unknown + "," + unknown + "]", "2025-03-26", 202},
		"with more":  {"[" + unknown + `,{"jsonrpc":"2.0","id":1,"method":"nope"}]`, "2025-03-26", 400},
	} {
		r := posted(t, web.Endpoint, test.body)
		if test.version != "" {
			r.Header.Set(versionHeader, test.version)
		}
		if answer, said := answerTo(t, web.HTTPClient, r); answer.StatusCode != test.status || test.status == 202 && len(said) > 0 || answer.Header.Get(sessionHeader) != "" {
			t.Errorf("%s: %d %s", name, answer.StatusCode, said)
		}
	}
	r := posted(t, web.Endpoint, unknown)
	r.Header.Set(sessionHeader, "unknown")
	if answer, said := answerTo(t, web.HTTPClient, r); answer.StatusCode != http.StatusNotFound {
		t.Errorf("in a session that is not there: %d %s", answer.StatusCode, said)
	}
}

// The header with the version is the one in the body, or the request is refused as the
// protocol has it.
func TestVersionsOfHeaderAndBody(t *testing.T) {
	web := overHTTP(t, newServer(t, setup{}))
	for header, says := range map[string]string{
		"2025-11-25": `-32020,"message":"the header MCP-Protocol-Version is \"2025-11-25\", and \"io.modelcontextprotocol/protocolVersion\" in params._meta is \"2026-07-28\"`,
		"2099-01-01": `-32020,"message":"the header MCP-Protocol-Version is \"2099-01-01\"`,
		"":           `-32020,"message":"the header MCP-Protocol-Version is missing`,
		newest:       `"tools":[`,
	} {
		r := posted(t, web.Endpoint, `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		r.Header.Set("Mcp-Method", "tools/list")
		if header != "" {
			r.Header.Set(versionHeader, header)
		}
		answer, said := answerTo(t, web.HTTPClient, r)
		if refused := header != newest; refused != (answer.StatusCode == http.StatusBadRequest) || !strings.Contains(string(said), says) || !strings.Contains(string(said), `"id":7`) {
			t.Errorf("%q: %d %s", header, answer.StatusCode, said)
		}
	}
}

// A proxy is told to hold no event back.
func TestProxiesHoldNothingBack(t *testing.T) {
	web := overHTTP(t, newServer(t, setup{}))
	r := posted(t, web.Endpoint, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	get := r.Clone(t.Context())
	get.Method, get.Body, get.ContentLength = http.MethodGet, nil, 0
	for _, one := range []*http.Request{r, get} {
		if answer, said := answerTo(t, web.HTTPClient, one); answer.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%s: %v %s", one.Method, answer.Header, said)
		}
	}
}

// A name in the header may be in Base64, as one with other characters than ASCII's is.
func TestNamesInBase64(t *testing.T) {
	p := &played{}
	web := overHTTP(t, playedServers(t, p, serverOf("a", []string{"note://Grüße"}, nil)))
	for name, status := range map[string]int{
		"note://Grüße": http.StatusOK, "note://other": http.StatusBadRequest,
	} {
		r := posted(t, web.Endpoint, `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"note://Grüße","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		r.Header.Set("Mcp-Method", "resources/read")
		r.Header.Set(versionHeader, newest)
		r.Header.Set(nameHeader, "=?base64?"+base64.StdEncoding.EncodeToString([]byte(name))+"?=")
		answer, said := answerTo(t, web.HTTPClient, r)
		if answer.StatusCode != status || status != http.StatusOK && !strings.Contains(string(said), "-32020") {
			t.Errorf("%s: %d %s", name, answer.StatusCode, said)
		}
	}
	if n := p.times("a:resources/read note://Grüße"); n != 1 {
		t.Errorf("it was read %d times", n)
	}
}

// An error behind a notification of its request stands in the same stream: its status is
// gone by then.
func TestAnErrorBehindProgress(t *testing.T) {
	s := newServer(t, setup{})
	progress := false
	s.sdk.AddReceivingMiddleware(func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
		return func(ctx context.Context, _ string, r mcpsdk.Request) (mcpsdk.Result, error) {
			if progress {
				_ = r.GetSession().(*mcpsdk.ServerSession).NotifyProgress(ctx, &mcpsdk.ProgressNotificationParams{ProgressToken: "p", Progress: 1})
			}
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no"}
		}
	})
	web := overHTTP(t, s)
	for _, progress = range []bool{false, true} {
		r := posted(t, web.Endpoint, `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		r.Header.Set("Mcp-Method", "tools/list")
		r.Header.Set(versionHeader, newest)
		answer, said := answerTo(t, web.HTTPClient, r)
		status, begin := http.StatusBadRequest, ""
		if progress {
			status, begin = http.StatusOK, "event: message\ndata: "
		}
		events := strings.Split(strings.TrimSpace(string(said)), "\n\n")
		last, found := strings.CutPrefix(events[len(events)-1], begin)
		if answer.StatusCode != status || !found || !json.Valid([]byte(last)) || !strings.Contains(last, `"code":-32602`) {
			t.Errorf("with progress %t: %d %s", progress, answer.StatusCode, said)
		}
	}
}

func posted(t *testing.T, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}
