package turn

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/budget"
)

// What calls use of the turn's budget while others wait for their slots, those no longer have.
func TestBudgetAfterAWaitForASlot(t *testing.T) {
	for name, spec := range map[string]budget.TurnSpec{
		"tool time": {ToolTime: 4 * time.Second},
		"deadline":  {Deadline: 5 * time.Second, Reserve: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			turn := newWorld().begin(t, Spec{Budget: spec})
			defer turn.End()
			began := time.Now()
			call := func(id, arguments string) Call {
				return Call{ID: id, Tool: "work", Arguments: json.RawMessage(arguments)}
			}
			got := run(t, turn, call("a", `{"ms": 2500}`), call("b", `{"queue": 2500, "ms": 9000}`), call("c", `{"queue": 3500}`))
			want(t, got, "ok", "timeout/deadline", "denied/turn_budget")
			if took := time.Since(began); took != 4*time.Second {
				t.Errorf("%s: over after %s", name, took)
			}
			if queue := got[2].Timing.QueueMs; queue != 3500 {
				t.Errorf("%s: refused after %d ms", name, queue)
			}
		})
	}
}
