package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// finished is a call that has said text.
type finished string

func (finished) Abort(api.Reason) {}

func (f finished) Result() *api.Result {
	r := supervisor.Verdict{Status: api.StatusOK}.Result()
	r.Content = append(r.Content, api.Content{Type: "text", Text: string(f)})
	return r
}

// Progress says which events of a call are missing.
func TestProgressSaysWhatIsMissing(t *testing.T) {
	turns := turn.New(turn.Config{
		Start: func(context.Context, supervisor.Request) turn.Running { return finished(strings.Repeat("x", 1<<20)) },
		Tool:  func(name string) (turn.Tool, bool) { return turn.Tool{Name: name}, true },
	})
	one, err := turns.Begin(turn.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if _, err := one.Run(t.Context(), []turn.Call{{ID: fmt.Sprint(i), Tool: "x", Arguments: json.RawMessage(fmt.Sprint(i))}}); err != nil {
			t.Fatal(err)
		}
	}
	one.End()
	p := &progress{began: time.Now()}
	for r := range one.Events(t.Context(), 0) {
		params, tell := p.of(r)
		if r.Gap == nil || r.Gap.From != 1 || !tell || params.Message != fmt.Sprintf("events 1 to %d of this call were lost", r.Gap.To) {
			t.Errorf("of %+v: %q", r.Gap, params.Message)
		}
		break
	}
}
