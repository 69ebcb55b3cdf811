package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/plugin"
)

// answers are lines for the request whose id they have as %[1]s; they are
// written with what keeps the server going.
var malformedAnswers = map[string]struct{ line, want string }{
	"text for error": {`{"jsonrpc":"2.0","id":%s,"error":"just text"}`, "just text"},
	"no version":     {`{"id":%s,"result":{"content":[],"tools":[]}}`, `no "jsonrpc": "2.0"`},
	"old version":    {`{"jsonrpc":"1.0","id":%s,"result":{"content":[],"tools":[]}}`, `"jsonrpc": "1.0", not "2.0"`},
	"in a batch":     {`[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":%s,"error":[1]}]`, "error"},
	"code as text":   {`{"jsonrpc":"2.0","id":%s,"error":{"code":"x","message":"y"}}`, "code"},
}

func init() {
	for name, answer := range malformedAnswers {
		scripts["call, "+name] = func(p *peer) { p.initialize(); p.say(answer.line, p.call().ID); p.drain() }
		scripts["list, "+name] = func(p *peer) { p.initialize(); p.say(answer.line, p.await("tools/list").ID); p.drain() }
		scripts["initialize, "+name] = func(p *peer) { p.say(answer.line, p.await("initialize").ID); p.drain() }
	}
	scripts["cannot tell the request"] = func(p *peer) {
		p.initialize()
		p.call()
		p.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON","data":{"at":1}}}`)
		p.drain()
	}
	scripts["says no reason"] = func(p *peer) { p.initialize(); p.refuse(p.call(), -1, ""); p.drain() }
	scripts["says no reason why it has no list"] = func(p *peer) { p.initialize(); p.refuse(p.await("tools/list"), -1, " "); p.drain() }
	scripts["says no reason why it does not start"] = func(p *peer) { p.refuse(p.await("initialize"), -1, ""); p.drain() }
}

func expectFailure(t *testing.T, name string, err error, kind plugin.FailureKind, parts ...string) {
	t.Helper()
	failure, ok := errors.AsType[*plugin.Failure](err)
	if !ok || failure.Kind != kind {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: no %q in %v", name, part, err)
		}
	}
}

// An answer in a form that JSON-RPC does not have ends the request at once, not
// at its deadline.
func TestMalformedAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range malformedAnswers {
		_, o := call1(t, server(t, "call, "+name), "x", "{}")
		expectFailure(t, "call, "+name, o.err, plugin.BrokeProtocol, "answered tools/call in a form that MCP does not have", answer.want)
		_, err := listTools(t, server(t, "list, "+name))
		expectFailure(t, "list, "+name, err, plugin.BrokeProtocol, "lists its tools in a form that MCP does not have", answer.want)
		_, err = listTools(t, server(t, "initialize, "+name))
		expectFailure(t, "initialize, "+name, err, plugin.StartFailed, "cannot be initialized", answer.want)
	}
}

// An error without the id of a request, which the server could not read, is that of the one
// request that waits: not of one that was given up, such as server/discover.
func TestAnErrorWithoutAnID(t *testing.T) {
	t.Parallel()
	a := server(t, "cannot tell the request")
	s, err := a.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.answer(ctx, "not/answered", params{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	_, o := call1(t, a, "x", "{}")
	rpc, is := errors.AsType[*plugin.RPCError](o.err)
	if !is || string(rpc.Raw) != `{"code":-32700,"message":"no JSON","data":{"at":1}}` {
		t.Errorf("%v", o.err)
	}
}

// What a server says beside an error's message is often all that it says.
func TestErrorData(t *testing.T) {
	for data, want := range map[string]string{
		`{"path": "/x", "n": [1, 2]}`:         `no (data: {"path":"/x","n":[1,2]})`,
		`"line 3: \"a\""`:                     `no (data: line 3: "a")`,
		`null`:                                "no",
		``:                                    "no",
		`"` + strings.Repeat("y", 5000) + `"`: "no (data: " + strings.Repeat("y", maxErrorDataBytes) + "…)",
	} {
		if got := textOf(&jsonrpc.Error{Code: -1, Message: "no", Data: json.RawMessage(data)}); got != want {
			t.Errorf("%q: %s, want %s", data, got, want)
		}
	}
}

func TestErrorsWithoutAMessage(t *testing.T) {
	t.Parallel()
	_, o := call1(t, server(t, "says no reason"), "x", "{}")
	if want := `MCP server "test": an error without a message (code -1)`; fmt.Sprint(o.err) != want {
		t.Errorf("%v, want %s", o.err, want)
	}
	_, err := listTools(t, server(t, "says no reason why it has no list"))
	expectFailure(t, "list", err, plugin.StartFailed, "does not list its tools: an error without a message")
	_, err = listTools(t, server(t, "says no reason why it does not start"))
	expectFailure(t, "initialize", err, plugin.StartFailed, "cannot be initialized: an error without a message")
}

// What of a result is of the wrong type is named without Go's types.
func TestResultsOfWrongTypes(t *testing.T) {
	t.Parallel()
	a := server(t, "content")
	for result, want := range map[string]string{`{"content":"x"}`: "content cannot be a string", `{"content":[],"isError":"true"}`: "isError cannot be a string"} {
		_, o := call1(t, a, "x", `{"result":`+result+`}`)
		expectFailure(t, result, o.err, plugin.BrokeProtocol, "in a form that MCP does not have: "+want)
	}
}
