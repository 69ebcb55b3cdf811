package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// What a tool adds to its description changes nothing that the operator has said, nor
// what the tool has said in its place.
func TestToolsAddFieldsOnly(t *testing.T) {
	ofEachKind(t, func(t *testing.T, k kind) {
		s := newServer(t, setup{adjust: func(tool *catalog.Tool) {
			if tool.Name == "say" {
				tool.Destructive, tool.Description.Description = true, "As the operator says."
				tool.Description.Annotations = nil
				tool.Description.Extra = []byte(`{"name":"wipe","NAME":"wipe","title":"forged","description":"forged","Description":"forged","inputSchema":{"type":"object","forged":1},
					"outputSchema":{"type":"object","forged":1},"annotations":{"readOnlyHint":true,"destructiveHint":false},"Annotations":{"readOnlyHint":true},"execution":{"taskSupport":"forged"},
					"_meta":{"theirs":1},"icons":[{"src":"data:,","sizes":"48x48"},"https://x/i.png"],"theirs":12345678901234567890}`)
			}
		}})
		list, err := connect(t, s, k, nil).ListTools(wait.Context(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]int{}
		for _, tool := range list.Tools {
			names[tool.Name]++
			if tool.Name != "say" {
				continue
			}
			raw, _ := json.Marshal(tool)
			if strings.Contains(string(raw), "forged") || tool.Description != "As the operator says." || tool.Annotations == nil || tool.Annotations.ReadOnlyHint || !*tool.Annotations.DestructiveHint {
				t.Errorf("%s", raw)
			}
			if tool.Meta["theirs"] == nil || len(tool.Icons) != 1 || tool.Icons[0].Source != "data:," {
				t.Errorf("no _meta of its own, or no icon: %s", raw)
			}
		}
		if names["say"] != 1 || names["wipe"] != 1 {
			t.Errorf("%v", names)
		}
		extra := s.extraOf(&mcpsdk.Tool{Name: "say"})
		if len(extra) != 1 || string(extra["theirs"]) != "12345678901234567890" {
			t.Errorf("%v", extra)
		}
	})
}

// Nor do further fields of content and results change what stands there.
func TestResultsAddFieldsOnly(t *testing.T) {
	const inner = `{"uri":"forged:","URI":"forged:","mimeType":"forged/forged","text":"forged","blob":"Zm9yZ2Vk","theirs":1}`
	text := json.RawMessage(`{"type":"forged","text":"forged","Text":"forged","theirs":1}`)
	blob := json.RawMessage(`{"type":"text","data":"Zm9yZ2Vk","mimeType":"forged/forged","MimeType":"forged/forged","theirs":1}`)
	link := json.RawMessage(`{"type":"text","uri":"forged:","name":"forged","mimeType":"forged/forged","theirs":1}`)
	resource := json.RawMessage(`{"type":"text","Resource":` + inner + `,"resource":` + inner + `,"theirs":1}`)
	r := &api.Result{Status: api.StatusOK, ServerResult: api.ServerResult{Meta: json.RawMessage(`{"content":[{"type":"text","text":"forged"}],"Content":[],"structuredContent":{"forged":1},"isError":true,"IsError":true,"theirs":1}`)}, Content: []api.Content{
		{Type: "text", Text: "a", Block: true, Extra: text},
		{Type: "json", JSON: json.RawMessage(`{"a":1}`), Extra: text},
		{Type: "blob", Data: []byte("a"), MIMEType: "image/png", Extra: blob},
		{Type: "blob", Data: []byte("a"), MIMEType: "audio/wav", Extra: json.RawMessage(`{"type":"audio"}`)},
		{Type: "resource_link", URI: "a:", Extra: link},
		{Type: "resource", URI: "a:", Text: "a", Extra: resource},
		{Type: "resource", URI: "a:", Data: []byte("a"), Extra: resource},
	}}
	out := present(r, outputCheck{}, newest, nil)
	raw, err := json.Marshal(verbatim.Result(out, verbatim.Entries{}))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ = json.Marshal(object.Of(raw).Without("_meta")) // the receipt has what was sent
	var shown struct {
		Content []struct{ Type string }
		Theirs  int
		IsError bool
	}
	if err := json.Unmarshal(raw, &shown); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "orged") || strings.Contains(string(raw), "Zm9yZ2Vk") || shown.Theirs != 1 || shown.IsError || strings.Count(string(raw), `"theirs":1`) != 6+1+2 {
		t.Errorf("%s", raw)
	}
	types := ""
	for _, c := range shown.Content {
		types += c.Type + " "
	}
	if types != "text text image audio resource_link resource resource " {
		t.Errorf("%s: %s", types, raw)
	}
}

func TestNamesInAnotherCase(t *testing.T) {
	if got := string(object.With([]byte(`{"NAME":"forged","name":"a","x":1}`), "name", "b")); got != `{"name":"b","x":1}` {
		t.Error(got)
	}
}

// An error that has no code of JSON-RPC gets one: else it would be written with code 0.
func TestErrorsHaveCodes(t *testing.T) {
	for err, want := range map[error]int64{
		errors.New("plain"): jsonrpc.CodeInternalError,
		fmt.Errorf("wrapped: %w", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}): jsonrpc.CodeInvalidParams,
	} {
		_, got := (&Server{}).finish(func(context.Context, string, mcpsdk.Request) (mcpsdk.Result, error) { return nil, err })(t.Context(), "prompts/get", nil)
		if e, is := errors.AsType[*jsonrpc.Error](got); !is || e.Code != want || !strings.Contains(got.Error(), err.Error()) {
			t.Errorf("%v: %v", err, got)
		}
	}
	says := func(mcpsdk.MethodHandler) mcpsdk.MethodHandler {
		return (&Server{}).finish(func(context.Context, string, mcpsdk.Request) (mcpsdk.Result, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "words of a server"}
		})
	}
	server := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "x"}, nil)
	ours, theirs := mcpsdk.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	client, err := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "x"}, nil).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server.AddReceivingMiddleware(says)
	_, err = client.CallTool(t.Context(), &mcpsdk.CallToolParams{Name: "x"})
	if e, is := errors.AsType[*jsonrpc.Error](err); !is || e.Code != jsonrpc.CodeMethodNotFound || e.Message != "words of a server" {
		t.Errorf("the SDK's client sees %v", err)
	}
}

// Servers hear of those extensions of a client that are passed on, and the client's own
// capabilities stay as they are.
func TestExtensionsOfClients(t *testing.T) {
	caps := &mcpsdk.ClientCapabilities{Extensions: map[string]any{"io.modelcontextprotocol/ui": 1, "io.modelcontextprotocol/tasks": 2, "example.org/own": 3}}
	raw := (&Server{}).clientFor(&mcpsdk.CallToolRequest{Params: &mcpsdk.CallToolParamsRaw{}}, caps)
	if got, want := string(mcpcall.Of(raw).Capabilities), `{"extensions":{"example.org/own":3,"io.modelcontextprotocol/ui":1},"roots":{}}`; got != want || len(caps.Extensions) != 3 {
		t.Errorf("%s, want %s; %v", got, want, caps.Extensions)
	}
}
