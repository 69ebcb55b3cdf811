package mcpserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
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
			if said := text(r); !r.IsError || !strings.Contains(said, "the client's answer was refused because it does not fit: "+want) || !strings.Contains(said, "denied: failed") {
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
			if shown, _ := json.Marshal(p); !strings.Contains(string(shown), `"format":"email"`) || strings.Contains(string(shown), verbatim.Key) {
				t.Errorf("the client is asked %s", shown)
			}
			return &mcpsdk.ElicitResult{Action: "accept", Content: content}, nil
		}
	})
	return attach(t, s, k, client)
}

// From 2026-07-28 on a question with such an answer is asked again at once, by the same
// key and with what was wrong, three times; then the call goes on without an answer.
func TestAnUnfitAnswerByARequest(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{kinds[1], kinds[3]} {
		rounds := says("accept", nil).options()
		rounds.MultiRoundTrip = &mcpsdk.MultiRoundTripOptions{Disabled: true}
		c := connect(t, newServer(t, setup{}), k, rounds)
		for _, last := range []struct {
			answer mcpsdk.InputResponse
			want   string
		}{
			{&mcpsdk.ElicitResult{Action: "accept", Content: map[string]any{"mail": "ada@example.com"}}, `answer {"mail":"ada@example.com"}`},
			{&mcpsdk.ElicitResult{Action: "decline"}, "denied: user"},
			{&mcpsdk.ElicitResult{Action: "perhaps"}, `does not fit: want the action accept, decline or cancel, not "perhaps"`},
			//lint:ignore SA1019 it is what a client may still send
			{&mcpsdk.ListRootsResult{}, "does not fit: want an answer with an action"},
		} {
			asked := invoke(t, c, mailQuestion(t))
			answered := func(answer mcpsdk.InputResponse) *mcpsdk.CallToolResult {
				again := mailQuestion(t)
				again.RequestState, again.InputResponses = asked.RequestState, mcpsdk.InputResponseMap{}
				for key := range asked.InputRequests {
					again.InputResponses[key] = answer
				}
				return invoke(t, c, again)
			}
			for want, content := range unfits {
				before := asked
				asked = answered(&mcpsdk.ElicitResult{Action: "accept", Content: content})
				for key, one := range before.InputRequests {
					p, is := asked.InputRequests[key].(*mcpsdk.ElicitParams)
					if !is || !strings.HasPrefix(p.Message, "The last answer does not fit: "+want+".\n\n") || strings.Count(p.Message, "does not fit") != 1 ||
						!strings.HasSuffix(one.(*mcpsdk.ElicitParams).Message, strings.SplitAfterN(p.Message, ".\n\n", 2)[1]) || asked.RequestState == before.RequestState {
						t.Fatalf("%s, %v: %s, asked again %+v", k.name, content, text(asked), p)
					}
				}
			}
			if r := answered(last.answer); !strings.Contains(text(r), last.want) {
				t.Errorf("%s, %T: %s", k.name, last.answer, text(r))
			}
		}
	}
}
