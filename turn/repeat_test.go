package turn

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/api"
)

func TestRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		same := func(i int) Call {
			raw := []string{`{"ms":1,"say":"x"}`, `{ "say": "x", "ms": 1 }`}[i%2]
			return Call{ID: string(rune('a' + i)), Tool: "work", Arguments: []byte(raw)}
		}
		for i := range 6 {
			r := run(t, turn, same(i))[0]
			noted := len(r.Warnings) > 0
			if noted != (i == 2 || i == 3) || (r.Reason == "repeat") != (i >= 4) {
				t.Errorf("call %d: %s/%s, warnings %q", i+1, r.Status, r.Reason, r.Warnings)
			}
		}
		poll := callOf("poll", "poll", 1)
		for i := range 7 {
			poll.ID = "poll" + string(rune('a'+i))
			if r := run(t, turn, poll)[0]; !r.OK() || len(r.Warnings) > 0 {
				t.Errorf("a repeatable tool's call %d: %s/%s, warnings %q", i+1, r.Status, r.Reason, r.Warnings)
			}
		}
		// What the host has seen in other turns counts, too.
		again := callOf("other", "work", 7)
		again.Before = 4
		want(t, run(t, turn, again), "denied/repeat")
	})
}

// What the host makes again by itself is no repetition of the model's.
func TestRetriesAreNoRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		for i := range 8 {
			retry := callOf("a", "work", 1)
			retry.Retry = i > 0
			if r := run(t, turn, retry)[0]; !r.OK() || len(r.Warnings) > 0 || r.CallID != "a" {
				t.Errorf("attempt %d: %s/%s of %s, warnings %q", i+1, r.Status, r.Reason, r.CallID, r.Warnings)
			}
		}
		if r := run(t, turn, callOf("b", "work", 1))[0]; len(r.Warnings) > 0 {
			t.Errorf("the model's second call: %q", r.Warnings)
		}
	})
}

// A call in between that is not read-only may have changed what the others find:
// they are counted anew. What never began, or only reads, changes nothing.
func TestRepeatsAfterAnotherCall(t *testing.T) {
	other := callOf("", "alone", 1)
	reading, claimed := callOf("", "reads", 1), callOf("", "claims", 1)
	banned, unknown, failed := callOf("", "banned", 1), callOf("", "nothing", 1), Call{Tool: "alone", Problem: "the arguments are no JSON"}
	asked := callOf("", "ask", 1)
	for name, one := range map[string]struct {
		between Call
		resets  bool
	}{
		"another": {other, true}, "confirmed to read": {reading, false}, "claims to read": {claimed, false}, "denied": {banned, false},
		"unknown": {unknown, false}, "no call": {failed, false}, "not approved": {asked, false}, "the status": {Call{Tool: StatusTool}, false},
	} {
		for _, batches := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				turn := w.begin(t, Spec{Headless: true})
				defer turn.End()
				var calls []Call
				for i := range 5 {
					c := callOf("", "work", 7)
					c.ID = fmt.Sprintf("s%d", i)
					between := one.between
					between.ID = fmt.Sprintf("b%d", i)
					if between.Arguments != nil {
						between.Arguments = fmt.Appendf(nil, `{"ms":%d}`, i+1)
					}
					calls = append(calls, c, between)
				}
				calls = calls[:9]
				var last *api.Result
				if batches {
					for _, c := range calls {
						last = run(t, turn, c)[0]
					}
				} else {
					last = run(t, turn, calls...)[8]
				}
				if (last.Reason == "repeat") == one.resets {
					t.Errorf("%s, in batches of their own %v: the fifth is %s/%s", name, batches, last.Status, last.Reason)
				}
			})
		}
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 20: "20th", 21: "21st", 112: "112th", 123: "123rd"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
