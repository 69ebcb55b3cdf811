package turn

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/api"
)

// A call that has not begun is refused once its tool is denied or gone, whatever people say,
// and what they say is kept for no other call.
func TestWhatIsDeniedWhileItWaits(t *testing.T) {
	for name, test := range map[string]struct {
		now  Tool
		ok   bool
		want string
	}{
		"denied":    {Tool{Name: "ask", Mode: ModeDeny}, true, "denied/policy"},
		"by a rule": {Tool{Name: "ask", Mode: ModeAsk, Rule: func(json.RawMessage) (Mode, string) { return ModeDeny, "deny" }}, true, "denied/policy"},
		"gone":      {Tool{}, false, "invalid_args/call"},
		"as it was": {Tool{Name: "ask", Mode: ModeAsk}, true, "ok"},
	} {
		for _, queued := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var reloaded atomic.Bool
				w, kept := approving(ApprovalOptions{})
				w.config.Tool = func(name string) (Tool, bool) {
					if name == "ask" && reloaded.Load() {
						return test.now, test.ok
					}
					tool, ok := testTools[name]
					return tool, ok
				}
				turn := w.begin(t, Spec{Owner: "token a"})
				defer turn.End()
				yes := api.Answer{Approve: true, Always: true, For: api.ForIdentity}
				calls, keeps := []Call{callOf("a", "ask", 1)}, 0
				if queued {
					calls, keeps = []Call{callOf("first", "alone", 1000), calls[0]}, 1
				}
				go func() {
					if queued {
						answer(t, turn, "a", yes)
						reloaded.Store(true)
						return
					}
					synctest.Wait()
					reloaded.Store(true)
					answer(t, turn, "a", yes)
				}()
				results := run(t, turn, calls...)
				if test.want == "ok" {
					keeps = 1
				}
				if got := statuses(results)[len(calls)-1]; got != test.want || len(kept.List()) != keeps {
					t.Errorf("%s, queued %t: %s, kept %+v", name, queued, got, kept.List())
				}
			})
		}
	}
}

// A call that waits unasked for its place is asked about then, once its tool or a rule is to be asked about.
func TestWhatIsToBeAskedAboutWhileItWaits(t *testing.T) {
	rule := func(json.RawMessage) (Mode, string) { return ModeAsk, "a rule" }
	for name, test := range map[string]struct {
		now      Tool
		headless bool
		answer   api.Answer
		want     string
	}{
		"yes":         {Tool{Mode: ModeAsk}, false, api.Answer{Approve: true}, "ok"},
		"no":          {Tool{Mode: ModeAsk}, false, api.Answer{}, "denied/user"},
		"destructive": {Tool{Destructive: true}, false, api.Answer{Approve: true}, "ok"},
		"by a rule":   {Tool{Rule: rule}, false, api.Answer{}, "denied/user"},
		"headless":    {Tool{Mode: ModeAsk}, true, api.Answer{}, "denied/headless"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var reloaded atomic.Bool
			w, _ := approving(ApprovalOptions{})
			w.config.Tool = func(name string) (Tool, bool) {
				if name == "new" && reloaded.Load() {
					return test.now, true
				}
				tool, ok := testTools[name]
				return tool, ok || name == "new"
			}
			turn := w.begin(t, Spec{Headless: test.headless})
			defer turn.End()
			go func() {
				synctest.Wait()
				reloaded.Store(true)
				if !test.headless {
					answer(t, turn, "a", test.answer)
				}
			}()
			results := run(t, turn, callOf("first", "alone", 1000), callOf("a", "new", 1))
			if got := statuses(results)[1]; got != test.want {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}
