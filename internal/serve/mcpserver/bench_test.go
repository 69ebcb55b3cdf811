package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// instant is a call that takes no time, so that only what is around it is left.
type instant struct{}

func (instant) Abort(api.Reason) {}

func (instant) Result() *api.Result {
	r := supervisor.Verdict{Status: api.StatusOK}.Result()
	r.Content = []api.Content{{Type: "text", Text: "said"}}
	r.Structured = json.RawMessage(`{"text":"said"}`)
	return r
}

// BenchmarkCall: what MCP, the session and the turn add to a call. The request
// goes over a pipe, as with stdio, or over HTTP on loopback; the client's own
// share is in it.
func BenchmarkCall(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			s := newServer(b, setup{})
			s.config.Turns = turn.New(turn.Config{
				Start: func(_ context.Context, r supervisor.Request) turn.Running {
					r.Events <- api.Event{Kind: api.EventStarted}
					return instant{}
				},
				Tool: func(name string) (turn.Tool, bool) { return turn.Tool{Name: name}, true },
			})
			c := connect(b, s, k, nil)
			var took []time.Duration
			n := 0
			for b.Loop() {
				n++
				began := time.Now()
				r, err := c.CallTool(b.Context(), params("say", arguments{Text: fmt.Sprint(n)}))
				if err != nil || r.IsError {
					b.Fatal(err, r)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}
