package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/plugin"
)

const mailForm = `{"type":"object","properties":{"mail":{"type":"string","format":"email"},"n":{"type":"integer","maximum":3}},"required":["mail"]}`

func mailQuestion(t *testing.T) *mcpsdk.CallToolParams {
	t.Helper()
	q, err := json.Marshal(plugin.Question{Prompt: "Where?", Schema: json.RawMessage(mailForm)})
	if err != nil {
		t.Fatal(err)
	}
	return params("ask", arguments{Text: string(q)})
}

var unfits = map[string]map[string]any{
	`mail: want an email address, such as ada@example.com (format), not the string "ada"`: {"mail": "ada"},
	`n: want at most 3, not 4`:  {"mail": "ada@example.com", "n": 4},
	`missing "mail" (required)`: {"n": 1},
}

// An answer that does not fit reaches no tool: the model reads why, by the words of the
// other surfaces, and it is not taken for a no.
func TestAnUnfitAnswer(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{kinds[0], kinds[2]} {
		for want, content := range unfits {
			r := invoke(t, careless(t, newServer(t, setup{}), k, content), mailQuestion(t))
			if said := text(r); !r.IsError || !strings.Contains(said, "the client's answer was refused, for it does not fit: "+want) || !strings.Contains(said, "denied: failed") {
				t.Errorf("%s, %v: %s", k.name, content, said)
			}
		}
	}
}

// careless is a client that accepts with any content: the SDK's own would check it.
func careless(t *testing.T, s *Server, k kind, content map[string]any) *mcpsdk.ClientSession {
	t.Helper()
	client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "careless"}, says("accept", nil).options())
	client.AddReceivingMiddleware(func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
		return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
			p, asked := r.GetParams().(*mcpsdk.ElicitParams)
			if !asked {
				return next(ctx, method, r)
			}
			if shown, _ := json.Marshal(p); !strings.Contains(string(shown), `"format":"email"`) || strings.Contains(string(shown), exactKey) {
				t.Errorf("the client is asked %s", shown)
			}
			return &mcpsdk.ElicitResult{Action: "accept", Content: content}, nil
		}
	})
	var transport mcpsdk.Transport = overHTTP(t, s)
	if !k.http {
		ours, theirs := mcpsdk.NewInMemoryTransports()
		if _, err := s.sdk.Connect(t.Context(), ours, nil); err != nil {
			t.Fatal(err)
		}
		transport = theirs
	}
	c, err := client.Connect(wait.Context(t), transport, &mcpsdk.ClientSessionOptions{ProtocolVersion: k.version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// From 2026-07-28 on a request that comes back with such an answer is refused, and the
// question waits for another one.
func TestAnUnfitAnswerByARequest(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{kinds[1], kinds[3]} {
		rounds := says("accept", nil).options()
		rounds.MultiRoundTrip = &mcpsdk.MultiRoundTripOptions{Disabled: true}
		c := connect(t, newServer(t, setup{}), k, rounds)
		first := invoke(t, c, mailQuestion(t))
		again := mailQuestion(t)
		again.RequestState = first.RequestState
		for key := range first.InputRequests {
			for want, content := range unfits {
				again.InputResponses = mcpsdk.InputResponseMap{key: &mcpsdk.ElicitResult{Action: "accept", Content: content}}
				_, err := c.CallTool(wait.Context(t), again)
				refused, is := errors.AsType[*jsonrpc.Error](err)
				if !is || refused.Code != jsonrpc.CodeInvalidParams || !strings.Contains(refused.Message, `does not fit: `+want) || !strings.Contains(refused.Message, key) {
					t.Errorf("%s, %v: %v", k.name, content, err)
				}
			}
			again.InputResponses = mcpsdk.InputResponseMap{key: &mcpsdk.ElicitResult{Action: "accept", Content: map[string]any{"mail": "ada@example.com"}}}
		}
		if r := invoke(t, c, again); text(r) != `answer {"mail":"ada@example.com"}` {
			t.Errorf("%s: %s", k.name, text(r))
		}
	}
}
