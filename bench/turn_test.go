package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// instant is a call that takes no time, so that only the turn's own is left.
type instant struct{}

func (instant) Abort(api.Reason) {}

func (instant) Result() *api.Result {
	return supervisor.Verdict{Status: api.StatusOK}.Result()
}

// BenchmarkTurnCall: what a turn, its events and its journal add to a call.
func BenchmarkTurnCall(b *testing.B) {
	kept, err := journal.Open(b.TempDir(), journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer kept.Close()
	m := turn.New(turn.Config{
		Start: func(_ context.Context, r supervisor.Request) turn.Running {
			r.Events <- api.Event{Kind: api.EventStarted}
			return instant{}
		},
		Tool:    func(name string) (turn.Tool, bool) { return turn.Tool{Name: name}, true },
		Journal: journal.Turns{Journal: kept},
	})
	t, err := m.Begin(turn.Spec{Budget: budget.TurnSpec{MaxCalls: 1 << 30}})
	if err != nil {
		b.Fatal(err)
	}
	defer t.End()
	var took []time.Duration
	n := 0
	for b.Loop() {
		n++
		call := turn.Call{ID: fmt.Sprint(n), Tool: "x", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
		began := time.Now()
		results, err := t.Run(context.Background(), []turn.Call{call})
		if err != nil || !results[0].OK() {
			b.Fatal(err, results)
		}
		took = append(took, time.Since(began))
	}
	b.ReportMetric(micros(percentile(took, 50)), "p50-µs")
	b.ReportMetric(micros(percentile(took, 99)), "p99-µs")
	b.ReportMetric(0, "ns/op")
}
