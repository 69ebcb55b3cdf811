//lint:file-ignore SA1019 clients of before 2026-07-28 set a level

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// What a kept server logs between calls reaches the clients that have set a level, from
// that level on and as it is.
func TestLogsBetweenCalls(t *testing.T) {
	s := playedServers(t, &played{}, kept(serverOf("a", []string{"x://1"}, nil)))
	for _, k := range []kind{kinds[0], kinds[2]} {
		heard, deaf := make(chan *mcpsdk.LoggingMessageParams, 10_000), make(chan string, 10_000)
		options := func(hear func(*mcpsdk.LoggingMessageParams)) *mcpsdk.ClientOptions {
			return &mcpsdk.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *mcpsdk.LoggingMessageRequest) { hear(r.Params) }}
		}
		connect(t, s, k, options(func(p *mcpsdk.LoggingMessageParams) { deaf <- p.Logger }))
		c := connect(t, s, k, options(func(p *mcpsdk.LoggingMessageParams) { heard <- p }))
		if err := c.SetLoggingLevel(wait.Context(t), &mcpsdk.SetLoggingLevelParams{Level: "warning"}); err != nil {
			t.Fatal(err)
		}
		says := func(share, level string) {
			s.Notice("a", share, "notifications/message", json.RawMessage(`{"level":"`+level+`","logger":"db","data":{"n":0.5},"_meta":{"k":"v"}}`))
		}
		wait.Until(t, "the client hears", func() bool { // once its stream is open
			says("", "info")
			says("another's", "error")
			says("", "error")
			return len(heard) > 0
		})
		if err := c.Ping(wait.Context(t), nil); err != nil || len(deaf) > 0 {
			t.Errorf("%s: %v, %d to a client that has set no level", k.name, err, len(deaf))
		}
		for range len(heard) {
			if p := <-heard; p.Level != "error" || p.Logger != "db" || p.Meta["k"] != "v" || fmt.Sprint(p.Data) != "map[n:0.5]" {
				t.Errorf("%s: %+v", k.name, p)
			}
		}
	}
}
