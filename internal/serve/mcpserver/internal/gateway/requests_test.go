package gateway

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
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/directory"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// What is kept from somebody is answered as what nobody has: by the SDK, or by the server
// that they may use.
func TestWhatIsKeptFromSomebodyIsNotThere(t *testing.T) {
	g := New(Host{Identity: func(ctx context.Context) access.Identity {
		name := sender(ctx)
		return access.Identity{Name: name, Tools: map[string][]string{"none": {}, "b": {"b:*/*"}}[name]}
	}})
	for _, name := range []string{"a", "b"} {
		g.servers = append(g.servers, directory.New([]catalog.Server{serverOf(name, []string{name + "://y"}, nil)})...)
	}
	g.listed.Prompts = map[string]directory.Prompt{"ask": {Entry: "a", Own: "ask"}}
	prompts := map[string]string{"a": "ask", "z": "nosuch"}
	for _, who := range []string{"none", "b"} {
		ctx := withSender(t.Context(), who)
		asks := map[string]func(string) (string, error){
			"a resource": func(name string) (string, error) {
				entry, own, err := g.ownerFor(ctx, name+"://y")
				return entry + " " + own, err
			},
			"a resource by its server": func(name string) (string, error) {
				entry, own, err := g.ownerFor(ctx, "toolhost:"+name+"/x://y")
				return entry + " " + own, err
			},
			"a prompt": func(name string) (string, error) {
				_, err := g.getPrompt(ctx, &mcpsdk.GetPromptRequest{Params: &mcpsdk.GetPromptParams{Name: prompts[name]}})
				return "", err
			},
			"a completion": func(name string) (string, error) {
				ref := &mcpsdk.CompleteReference{Type: "ref/prompt", Name: prompts[name]}
				_, err := g.complete(ctx, &mcpsdk.CompleteRequest{Params: &mcpsdk.CompleteParams{Ref: ref}})
				return "", err
			},
		}
		for what, ask := range asks {
			hidden, hiddenErr := ask("a")
			none, noErr := ask("z")
			plain := func(text string, err error) string {
				return strings.NewReplacer("ask", "NAME", "nosuch", "NAME", "z", "NAME", "a:", "NAME:", "/a/", "/NAME/", "toolhost:a", "toolhost:NAME").Replace(fmt.Sprintf("%s, %+v", text, err))
			}
			if plain(hidden, hiddenErr) != plain(none, noErr) {
				t.Errorf("%s asks for %s: %s, %v, but of none %s, %v", who, what, hidden, hiddenErr, none, noErr)
			}
		}
	}
	if entry, _, err := g.ownerFor(withSender(t.Context(), "b"), "b://y"); entry != "b" || err != nil {
		t.Errorf("what one may use: %s, %v", entry, err)
	}
}

// A server hears of other roots from the clients that it has asked, and in their name.
func TestRootsOfOthers(t *testing.T) {
	asked, other, server := &mcpsdk.ServerSession{}, &mcpsdk.ServerSession{}, Origin{Entry: "a"}
	g := New(Host{
		Track: func(*mcpsdk.ServerSession) {},
		Go:    func(func()) {}, // nothing is sent
	})
	g.servers = directory.New([]catalog.Server{kept(serverOf("a", nil, nil))})
	g.AskedRoots(server, asked, "uid 1")
	g.AskedRoots(Origin{Entry: "b"}, other, "uid 2")
	for _, by := range []*mcpsdk.ServerSession{other, {}} {
		if g.rootsChanged(t.Context(), &mcpsdk.RootsListChangedRequest{Session: by}); g.rooted[server].running {
			t.Error("the server hears of another's roots")
		}
	}
	if g.rootsChanged(t.Context(), &mcpsdk.RootsListChangedRequest{Session: asked}); !g.rooted[server].running || g.rooted[server].from != "uid 1" {
		t.Errorf("%+v", g.rooted[server])
	}
	g.rooted[server].running = false
	if g.Forget(asked); len(g.rooted) != 0 {
		t.Error("a session that has ended is remembered")
	}
}

// A server's extensions are offered where nothing but content has a part in them.
func TestExtensionsOfServers(t *testing.T) {
	one := serverOf("a", nil, nil)
	one.Offers.Capabilities = []byte(`{"extensions":{"io.modelcontextprotocol/ui":{},"io.modelcontextprotocol/tasks":{},"example.org/own":{}}}`)
	g := offers{servers: directory.New([]catalog.Server{one})}
	all := g.extensionsFor(access.Identity{})
	if _, tasks := all["io.modelcontextprotocol/tasks"]; tasks || len(all) != 2 {
		t.Errorf("%v", all)
	}
}

// What is missing has the code of the client's version, whatever its server speaks, and
// its URI. Other errors are the server's own.
func TestCodesOfMissingResources(t *testing.T) {
	const uri = "x://\a\x7f<é>"
	named, _ := json.Marshal(map[string]string{"uri": "own:" + uri})
	const old = -32002
	for name, test := range map[string]struct {
		err           error
		before, since int64
		uri           string
	}{
		"nobody's":              {noResource(uri), old, jsonrpc.CodeInvalidParams, uri},
		"of an old server":      {&jsonrpc.Error{Code: old}, old, jsonrpc.CodeInvalidParams, uri},
		"of a new server":       {&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Data: named}, old, jsonrpc.CodeInvalidParams, "own:" + uri},
		"another parameter":     {&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}, jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidParams, ""},
		"another error with it": {&jsonrpc.Error{Code: jsonrpc.CodeInternalError, Data: named}, jsonrpc.CodeInternalError, jsonrpc.CodeInternalError, "own:" + uri},
	} {
		for version, code := range map[string]int64{"2025-06-18": test.before, "2025-11-25": test.before, "2026-07-28": test.since} {
			e, ok := errors.AsType[*jsonrpc.Error](notFound(test.err, uri, version))
			if !ok || e.Code != code {
				t.Errorf("%s, %s: %+v, want code %d", name, version, e, code)
				continue
			}
			var data struct{ URI string }
			if len(e.Data) > 0 && json.Unmarshal(e.Data, &data) != nil || data.URI != test.uri {
				t.Errorf("%s, %s: data %q, want the URI %q", name, version, e.Data, test.uri)
			}
		}
	}
	if err := errors.New("other"); notFound(err, uri, "2025-11-25") != err {
		t.Error("an error without a code is another one")
	}
}

// An answer that lacks what it is about is not one, and its warnings say why.
func TestAnswersHaveTheirField(t *testing.T) {
	var out mcpsdk.GetPromptResult
	err := decodeAnswer(&api.Result{Warnings: []string{"structured_dropped: why"}}, "messages", &out)
	if err == nil || !strings.Contains(err.Error(), "no messages: structured_dropped: why") {
		t.Error(err)
	}
}

// Clients have no use for Go's types in what is wrong with an answer.
func TestWrongAnswersAreWorded(t *testing.T) {
	var out struct {
		Messages []struct{} `json:"messages"`
	}
	if err := decodeAnswer(&api.Result{}, "messages", &out); err == nil || err.Error() != "it has no messages" {
		t.Error(err)
	}
	err := decodeAnswer(&api.Result{Structured: json.RawMessage(`{"messages":"x"}`)}, "messages", &out)
	if err == nil || err.Error() != "it has a string where messages has no place for one" {
		t.Error(err)
	}
}

// Lists that a server writes as null are empty: strict clients take no null for them.
func TestListsThatAreNull(t *testing.T) {
	t.Parallel()
	answered := json.RawMessage(nil)
	g := New(Host{
		Identity: func(context.Context) access.Identity { return access.Identity{} },
		Call: func(context.Context, *mcpsdk.CallToolRequest, bool) (*api.Result, *verbatim.Inputs, error) {
			return &api.Result{Status: api.StatusOK, Structured: answered}, nil, nil
		},
	})
	g.listed.Prompts = map[string]directory.Prompt{"ask": {Entry: "a", Own: "ask"}}
	answered = json.RawMessage(`{"messages":null}`)
	prompt, err := g.getPrompt(t.Context(), &mcpsdk.GetPromptRequest{Params: &mcpsdk.GetPromptParams{Name: "ask"}})
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := json.Marshal(verbatim.Result(prompt, verbatim.Entries{})); string(object.Of(raw)["messages"]) != "[]" {
		t.Errorf("%s", raw)
	}
	for _, completion := range []string{`{"values":null,"total":1.0}`, `{"total":1.0}`} {
		answered = json.RawMessage(`{"completion":` + completion + `}`)
		result, err := g.complete(t.Context(), &mcpsdk.CompleteRequest{Params: &mcpsdk.CompleteParams{Ref: &mcpsdk.CompleteReference{Type: "ref/prompt", Name: "ask"}}})
		if err != nil {
			t.Fatal(err)
		}
		if raw, _ := json.Marshal(verbatim.Result(result, verbatim.Entries{})); string(object.Of(raw)["completion"]) != `{"total":1.0,"values":[]}` {
			t.Errorf("%s", raw)
		}
	}
}

// A completion is passed on with the numbers that its server has written.
func TestCompletionsAsWritten(t *testing.T) {
	t.Parallel()
	const written = `{"completion":{"values":["a"],"total":1.0,"hasMore":null}}`
	g := New(Host{
		Identity: func(context.Context) access.Identity { return access.Identity{} },
		Call: func(context.Context, *mcpsdk.CallToolRequest, bool) (*api.Result, *verbatim.Inputs, error) {
			return &api.Result{Status: api.StatusOK, Structured: json.RawMessage(written)}, nil, nil
		},
	})
	g.listed.Prompts = map[string]directory.Prompt{"ask": {Entry: "a", Own: "ask"}}
	result, err := g.complete(t.Context(), &mcpsdk.CompleteRequest{Params: &mcpsdk.CompleteParams{Ref: &mcpsdk.CompleteReference{Type: "ref/prompt", Name: "ask"}}})
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := json.Marshal(verbatim.Result(result, verbatim.Entries{})); err != nil || string(object.Of(raw).Without("_meta")["completion"]) != string(object.Of([]byte(written))["completion"]) {
		t.Errorf("%s, %v, want %s", raw, err, written)
	}
}
