package turn

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/turn/format"
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

// A call that has used up the turn's time says so, as no smaller one may follow; one that
// has used up its own does not.
func TestACallThatHasUsedUpTheTurnSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		spec budget.TurnSpec
		want budget.Refusal
	}{
		"tool time": {budget.TurnSpec{ToolTime: 4 * time.Second}, budget.RefusalToolTime},
		"deadline":  {budget.TurnSpec{Deadline: 5 * time.Second, Reserve: time.Second}, budget.RefusalDeadline},
		"its own":   {budget.TurnSpec{ToolTime: time.Hour}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			turn := newWorld().begin(t, Spec{Budget: c.spec})
			defer turn.End()
			got := run(t, turn, callOf("a", "work", 60_000))
			want(t, got, "timeout/deadline")
			if said := slices.Contains(got[0].Warnings, string(c.want)); said != (c.want != "") || format.Note(got[0]) == "" && said {
				t.Errorf("%s: warnings %q, of settings %q", name, got[0].Warnings, got[0].Timing.SettingsWarnings)
			}
		})
	}
}
