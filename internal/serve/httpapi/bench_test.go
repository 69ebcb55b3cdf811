package httpapi

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/turn"
)

// What HTTP adds to a batch of one call is the difference of the two. The call
// itself costs nothing: it is the turn's own.
func BenchmarkRun(b *testing.B) {
	w := newWorld(b, nil)
	b.Run("http", func(b *testing.B) {
		id := w.begin(api.TurnSpec{MaxCalls: 1e9})
		call := []api.Call{{ID: "1", Tool: turn.StatusTool}}
		for b.Loop() {
			if _, err := w.client.Run(b.Context(), id, call); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		t, err := w.turns.Begin(turn.Spec{Budget: budget.TurnSpec{MaxCalls: 1e9}})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			results, err := t.Run(b.Context(), []turn.Call{{ID: "1", Tool: turn.StatusTool}})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(results); err != nil {
				b.Fatal(err)
			}
		}
	})
}
