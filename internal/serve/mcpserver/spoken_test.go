package mcpserver

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/gateway"
)

// spoken are the answers to lines over a pipe, each of which is sent once the one before is
// answered.
func spoken(t *testing.T, s *Server, lines ...string) (answers []string) {
	t.Helper()
	w := newSpeaker(t, s)
	for _, line := range lines {
		if !strings.Contains(line, `"id":`) {
			w.say(t, line)
			continue
		}
		answers = append(answers, w.ask(t, line))
	}
	w.end(t)
	return answers
}

// speaker is a client of the test's own over a pipe.
type speaker struct {
	to     io.WriteCloser
	from   *lines
	served chan error
}

func newSpeaker(t *testing.T, s *Server) *speaker {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	w := &speaker{to, newLines(from), make(chan error, 1)}
	go func() { w.served <- s.Serve(t.Context(), in, out) }()
	return w
}

func (w *speaker) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(w.to, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// ask is the next line after this one.
func (w *speaker) ask(t *testing.T, line string) string {
	t.Helper()
	w.say(t, line)
	answer, err := w.from.next()
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func (w *speaker) end(t *testing.T) {
	t.Helper()
	_ = w.to.Close()
	if err := <-w.served; err != nil {
		t.Error(err)
	}
}

const (
	saysInitialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
	saysInitialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// A second greeting is refused, whatever wrapped servers have to say in one.
func TestASecondInitialize(t *testing.T) {
	for name, s := range map[string]*Server{"alone": newServer(t, setup{}), "with a server": playedServers(t, &played{}, serverOf("a", []string{"x://1"}, nil))} {
		said := spoken(t, s, saysInitialize, saysInitialized, strings.Replace(saysInitialize, `"id":1`, `"id":2`, 1))
		if !strings.Contains(said[0], `"result":`) || !strings.Contains(said[1], `"id":2,"error":{"code":-32600,"message":"the session has begun already`) {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// A session is of the version that its client was answered with, not of the one that it
// has asked for: a human is asked by a request of the server's.
func TestAVersionThatIsNotAgreedTo(t *testing.T) {
	for asked, agreed := range map[string]string{
		"2026-07-28": gateway.LastFormer, "DRAFT-2026-v1": gateway.LastFormer, "2099-01-01": gateway.LastFormer, "1999-01-01": gateway.LastFormer, "2025-06-18": "2025-06-18",
	} {
		said := spoken(t, newServer(t, setup{}),
			strings.NewReplacer("2025-11-25", asked, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`).Replace(saysInitialize), saysInitialized,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wipe","arguments":{}}}`)
		if !strings.Contains(said[0], `"protocolVersion":"`+agreed+`"`) || !strings.Contains(said[1], `"method":"elicitation/create"`) || strings.Contains(said[1], "input_required") {
			t.Errorf("%s: %q", asked, said)
		}
	}
}

// What the SDK refuses without a code, or without a word, is refused with both.
func TestRefusalsHaveACodeAndAReason(t *testing.T) {
	said := spoken(t, newServer(t, setup{}),
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"nope"}`,
		strings.Replace(saysInitialize, `"2025-11-25"`, "5", 1),
		saysInitialize, saysInitialized,
		`{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"say","arguments":[]}}`,
		`{"jsonrpc":"2.0","id":6,`,
	)
	for i, want := range []string{
		`"id":1,"result":{}`,
		`"id":2,"error":{"code":-32600,"message":"tools/call without a session: begin one with initialize"}`,
		`"id":3,"error":{"code":-32601,"message":"unknown method \"nope\""}`,
		`"id":1,"error":{"code":-32602,"message":"params.protocolVersion must be a string, not 5"}`,
		`"id":1,"result":{"capabilities":`,
		`"id":4,"error":{"code":-32602,"message":"unknown cursor \"x\": use the nextCursor of an answer, or leave it out to begin"}`,
		`"id":5,"error":{"code":-32602,"message":"params.arguments must be an object, not []"}`,
		`"id":null,"error":{"code":-32700,`,
	} {
		if !strings.Contains(said[i], want) {
			t.Errorf("%s, want %s", said[i], want)
		}
	}
}

// From 2026-07-28 on a request needs no session.
func TestNoSessionIsNeeded(t *testing.T) {
	said := spoken(t, newServer(t, setup{}), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if !strings.Contains(said[0], `"tools":[`) {
		t.Error(said[0])
	}
}

// An error of a wrapped server comes with its code, its words and its data, also where the
// SDK has words of its own for the code.
func TestErrorsOfServersAreWhole(t *testing.T) {
	for _, code := range []int64{jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, jsonrpc.CodeInternalError, -32042, 7} {
		p := &played{fails: func(string) *jsonrpc.Error {
			return &jsonrpc.Error{Code: code, Message: "words of a server", Data: json.RawMessage(`{"why":[1.50]}`)}
		}}
		said := spoken(t, playedServers(t, p, serverOf("a", []string{"x://1"}, nil)), saysInitialize, saysInitialized,
			`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x://1"}}`)
		if want := fmt.Sprintf(`"error":{"code":%d,"message":"words of a server","data":{"why":[1.50]}}`, code); !strings.Contains(said[1], want) {
			t.Errorf("%s, want %s", said[1], want)
		}
	}
}

// A client never sees how a URI that no server lists gets to the one that is asked for it.
func TestUnlistedURIs(t *testing.T) {
	for _, uri := range []string{"x://unlisted", "y://a b?c=%20&d#e", "no scheme \u00e9\"", "", "%zz"} {
		params, _ := json.Marshal(map[string]string{"uri": uri})
		read := `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":` + string(params) + `}`
		p := &played{}
		if said := spoken(t, playedServers(t, p, serverOf("a", []string{"x://1"}, nil)), saysInitialize, saysInitialized, read); p.times("a:resources/read "+uri) != 1 {
			t.Errorf("%q: asked %q, said %s", uri, p.asked, said[1])
		}
		said := spoken(t, playedServers(t, &played{}), saysInitialize, saysInitialized, read)
		if want := `"error":{"code":-32002,"message":"Resource not found","data":` + string(params); !strings.Contains(said[1], want) {
			t.Errorf("no server: %s, want %s", said[1], want)
		}
	}
}
