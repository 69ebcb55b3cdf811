package turn

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// What a call waits for behind its grant makes no more time for calls than the turn has.
func TestCallsEndWithTheTurnsTimeForThem(t *testing.T) {
	queues := func(a *fakeArgs) { a.Ask, a.Queue, a.Ms = "", 8000, 60_000 }
	for name, c := range map[string]struct {
		spec   budget.TurnSpec
		calls  []Call
		answer time.Duration // of a's question
		want   []string
		over   time.Duration
	}{
		"tool time behind a queue":      {budget.TurnSpec{ToolTime: 10 * time.Second}, []Call{asking("a", "", queues), callOf("b", "work", 8000)}, 0, []string{"cancelled/timeout", "ok"}, 11 * time.Second},
		"tool time behind a question":   {budget.TurnSpec{ToolTime: 10 * time.Second}, []Call{asking("a", "", func(a *fakeArgs) { a.Ms = 9000 }), callOf("b", "work", 8000)}, 20 * time.Second, []string{"cancelled/timeout", "ok"}, 23 * time.Second},
		"a deadline's reserve":          {budget.TurnSpec{Deadline: 20 * time.Second, Reserve: 5 * time.Second}, []Call{asking("a", "", queues)}, 0, []string{"cancelled/timeout"}, 16 * time.Second},
		"a wait for a human moves it":   {budget.TurnSpec{Deadline: 20 * time.Second, Reserve: 5 * time.Second}, []Call{asking("a", "", func(a *fakeArgs) { a.Ms = 14_000 })}, 30 * time.Second, []string{"ok"}, 44 * time.Second},
		"its own timeout has its grace": {budget.TurnSpec{ToolTime: 35 * time.Second}, []Call{{ID: "a", Tool: "work", Arguments: []byte(`{"ms":60000,"grace":20000}`)}}, 0, []string{"timeout/deadline"}, 50 * time.Second},
		"its own timeout is the first":  {budget.TurnSpec{ToolTime: 10 * time.Second}, []Call{callOf("a", "work", 60_000)}, 0, []string{"timeout/deadline"}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				turn := w.begin(t, Spec{Budget: c.spec})
				defer turn.End()
				if c.answer > 0 {
					time.AfterFunc(c.answer, func() { answer(t, turn, "a", api.Answer{Approve: true}) })
				}
				began := time.Now()
				results := run(t, turn, c.calls...)
				want(t, results, c.want...)
				if got := time.Since(began).Truncate(10 * time.Millisecond); got != c.over {
					t.Errorf("over after %s, want %s", got, c.over)
				}
				why := strings.Join(results[0].Warnings, "\n")
				if ended := results[0].Status == api.StatusCancelled; strings.Contains(why, "the call was ended: ") != ended {
					t.Errorf("warnings %q", why)
				}
			})
		})
	}
}
