//lint:file-ignore SA1019 clients of before 2026-07-28 set a level

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/plugin"
)

// What a client says beside its answer to a question, in _meta, reaches the tool, and what a
// tool's log has beside its value reaches the client.
func TestMetaOfAnswersAndLogs(t *testing.T) {
	t.Parallel()
	form := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)
	ofEachKind(t, func(t *testing.T, k kind) {
		heard := make(chan *mcpsdk.LoggingMessageParams, 10)
		h := &human{answer: func(*mcpsdk.ElicitParams) *mcpsdk.ElicitResult {
			return &mcpsdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}, Meta: mcpsdk.Meta{"example.org/k": 1.5}}
		}}
		o := h.options()
		o.LoggingMessageHandler = func(_ context.Context, r *mcpsdk.LoggingMessageRequest) { heard <- r.Params }
		c := connect(t, newServer(t, setup{}), k, o)
		call := asks(t, plugin.Question{Prompt: "Who?", Schema: form})
		if k.version < multiRound {
			if err := c.SetLoggingLevel(wait.Context(t), &mcpsdk.SetLoggingLevelParams{Level: "info"}); err != nil {
				t.Fatal(err)
			}
		} else {
			call.Meta = mcpsdk.Meta{mcpsdk.MetaKeyLogLevel: "info"}
		}
		if r := invoke(t, c, call); text(r) != `answer {"name":"Ada"}` {
			t.Errorf("%s", text(r))
		}
		select {
		case p := <-heard:
			if p.Logger != "asker" || fmt.Sprint(p.Data) != "map[name:Ada]" || fmt.Sprint(p.Meta) != "map[example.org/k:1.5]" {
				t.Errorf("heard %+v", p)
			}
		case <-wait.Context(t).Done():
			t.Error("the client hears nothing")
		}
		request := plugin.Question{Requests: map[string]plugin.ClientRequest{"k": {
			Method: "elicitation/create", Params: json.RawMessage(`{"message":"Who?","requestedSchema":` + string(form) + `}`),
		}}}
		if r := invoke(t, c, asks(t, request)); text(r) != `answer {"k":{"action":"accept","content":{"name":"Ada"},"_meta":{"example.org/k":1.5}}}` {
			t.Errorf("%s", text(r))
		}
	})
}
