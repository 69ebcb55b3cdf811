package mcpserver

import (
	"context"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/turn"
)

// What is asked in the turn of an MCP client is put to the client's human, where the
// client can ask; an approval for the session does not cover it.
func TestRaisedInAClientsTurn(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		for name, human := range map[string]*human{"form": says("accept", map[string]any{"always": true}), "none": nil} {
			s := newServer(t, setup{adjust: asking})
			var options *mcpsdk.ClientOptions
			if human != nil {
				options = human.options()
			}
			if name == "none" {
				s = newServer(t, setup{})
			}
			c := connect(t, s, k, options)
			ctx, stop := context.WithCancel(wait.Context(t))
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, _ = c.CallTool(ctx, params("hang", arguments{}))
			}()
			var of *turn.Turn
			wait.Until(t, "the call to run", func() bool {
				for _, info := range s.config.Turns.Active() {
					if len(info.CurrentTools) > 0 && info.CurrentTools[0].State == "running" {
						of, _ = s.config.Turns.Turn(info.TurnID)
					}
				}
				return of != nil
			})
			want := map[string]string{"form": api.OutcomeAnswered, "none": api.OutcomeHeadless}[name]
			for _, kind := range []api.InteractionKind{api.KindApproval, api.KindConfirm, api.KindEscalation} {
				r, err := of.Raise(ctx, turn.Question{Kind: kind, Prompt: "Is it " + string(kind) + "?", Tool: "hang"})
				if err != nil || r.Outcome != want {
					t.Errorf("%s: %+v, %v", kind, r, err)
				}
				if human != nil && !strings.Contains(human.last().Message, "About the tool hang: Is it "+string(kind)) {
					t.Errorf("asked %q", human.last().Message)
				}
			}
			if r, err := of.Raise(ctx, turn.Question{Kind: api.KindPassword, Prompt: "?"}); err != nil || r.Outcome == api.OutcomeAnswered {
				t.Errorf("a password by a form: %+v, %v", r, err)
			}
			stop()
			<-over
		}
	})
}

func (h *human) last() *mcpsdk.ElicitParams {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[len(h.asked)-1]
}
