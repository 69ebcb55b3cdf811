package mcpserver

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
		"no notification": {`{"jsonrpc":"2.0","method":"nope"}`, 400, "null", "-32601"},
	} {
		r, err := web.HTTPClient.Do(posted(t, web.Endpoint, test.body))
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
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
