package turn

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

func want(t *testing.T, results []*api.Result, list ...string) {
	t.Helper()
	if got := statuses(results); !slices.Equal(got, list) {
		t.Errorf("got %q, want %q", got, list)
	}
}

func TestResultsComeInCallOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		results := run(t, turn, callOf("a", "work", 3000), callOf("b", "work", 40_000), callOf("c", "work", 1000))
		want(t, results, "ok", "timeout/deadline", "ok")
		if w.fakes.most != 3 || results[1].Text() != "b" {
			t.Errorf("%d at once, partial %q", w.fakes.most, results[1].Text())
		}
		if info, _ := turn.Info(); !slices.Equal(info.TimedOutTools, []string{"work"}) || info.ToolCallCount != 3 {
			t.Errorf("info %+v", info)
		}
	})
}

func TestAnActiveTurnsIDIsTaken(t *testing.T) {
	w := newWorld()
	turn := w.begin(t, Spec{ID: "t"})
	if _, err := w.Begin(Spec{ID: "t"}); !errors.Is(err, ErrActive) {
		t.Errorf("the same id again: %v", err)
	}
	turn.End()
}

func TestExclusiveRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		began := time.Now()
		want(t, run(t, turn, callOf("a", "work", 1000), callOf("b", "work", 2000), callOf("x", "alone", 1000), callOf("c", "work", 1000), callOf("d", "work", 1000)),
			"ok", "ok", "ok", "ok", "ok")
		if got := time.Since(began); got != 4*time.Second {
			t.Errorf("took %s: want 2s for two, 1s for the exclusive one, 1s for two", got)
		}
		if !slices.Equal(w.fakes.started[2:3], []string{"x"}) {
			t.Errorf("started %q", w.fakes.started)
		}
	})
}

func TestAbortDuringTheFirstOfFive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		child := w.begin(t, Spec{ParentID: turn.ID()})
		defer child.End()
		childResult := make(chan []*api.Result, 1)
		go func() {
			results, _ := child.Run(context.Background(), []Call{callOf("k", "work", 20_000)})
			childResult <- results
		}()
		go func() {
			time.Sleep(time.Second)
			turn.Abort(api.ReasonUser)
		}()
		var calls []Call
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			calls = append(calls, callOf(id, "alone", 20_000))
		}
		results := run(t, turn, calls...)
		want(t, results, "cancelled/user", "cancelled/user", "cancelled/user", "cancelled/user", "cancelled/user")
		for _, r := range results[1:] {
			if r.Message != "[CANCELLED] Turn aborted by user." || r.Retry.SideEffects != "none" {
				t.Errorf("message %q, %+v", r.Message, r.Retry)
			}
		}
		want(t, <-childResult, "cancelled/parent")
		want(t, run(t, turn, callOf("late", "work", 1)), "cancelled/user")
		if _, err := w.Begin(Spec{ParentID: turn.ID()}); !errors.Is(err, ErrParentOver) {
			t.Errorf("a child of an aborted turn: %v", err)
		}
	})
}

// Nobody is left to want what the child of a turn that ends brings.
func TestEndAbortsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		child := w.begin(t, Spec{ParentID: turn.ID()})
		defer child.End()
		time.AfterFunc(time.Second, turn.End)
		want(t, run(t, child, callOf("k", "work", 20_000)), "cancelled/parent")
	})
}

func TestSecondAbortKillsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			turn.Abort(api.ReasonUser)
			time.Sleep(time.Second)
			turn.Abort(api.ReasonUser)
		}()
		call := Call{ID: "a", Tool: "work", Arguments: []byte(`{"ms":60000,"grace":20000}`)}
		want(t, run(t, turn, call), "cancelled/user")
		if got := time.Since(began); got != 2*time.Second {
			t.Errorf("over after %s, want 2s", got)
		}
	})
}

func TestAbortOfOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		go func() {
			time.Sleep(time.Second)
			if !turn.AbortCall("b") || turn.AbortCall("nobody") || !turn.AbortCall("x") {
				t.Error("abort of a call: found is wrong")
			}
		}()
		want(t, run(t, turn, callOf("a", "work", 3000), callOf("b", "work", 20_000), callOf("x", "alone", 1000)), "ok", "cancelled/user", "cancelled/user")
	})
}

// An id that an earlier batch has used is another one in events; either aborts.
func TestAbortOfARepeatedID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		want(t, run(t, turn, callOf("a", "work", 1)), "ok")
		for _, id := range []string{"a#2", "a"} {
			go func() {
				time.Sleep(time.Second)
				if info, _ := turn.Info(); len(info.CurrentTools) != 1 || !strings.HasPrefix(info.CurrentTools[0].CallID, "a#") {
					t.Errorf("current tools %+v", info.CurrentTools)
				}
				if !turn.AbortCall(id) {
					t.Errorf("no call %s to abort", id)
				}
			}()
			want(t, run(t, turn, callOf("a", "work", 20_000)), "cancelled/user")
		}
	})
}

func TestClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(ErrDisconnected) })
		results, err := turn.Run(ctx, []Call{callOf("a", "work", 20_000)})
		if err != nil {
			t.Fatal(err)
		}
		want(t, results, "cancelled/disconnect")
		i := slices.IndexFunc(w.journal.list(), func(r Record) bool { return r.Kind == api.EventTurnAbort })
		if i < 0 || w.journal.list()[i].Reason != api.ReasonDisconnect {
			t.Errorf("turn_abort is event %d: %+v", i, w.journal.list())
		}
	})
}

// What a call's start is cut short for is what its turn is aborted for.
func TestAbortDuringAStart(t *testing.T) {
	for reason, cause := range map[api.Reason]error{
		api.ReasonDisconnect: fmt.Errorf("over: %w", ErrDisconnected), api.ReasonTimeout: context.DeadlineExceeded, api.ReasonUser: nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.config.Start = func(ctx context.Context, _ supervisor.Request) Running {
				<-ctx.Done()
				result := supervisor.Verdict{Status: api.StatusCancelled, Reason: supervisor.ReasonOf(ctx)}.Result()
				result.Retry.SideEffects = "possible"
				return over{result}
			}
			turn := w.begin(t, Spec{})
			defer turn.End()
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			results, err := turn.Run(ctx, []Call{callOf("a", "work", 1)})
			if err != nil {
				t.Fatal(err)
			}
			want(t, results, "cancelled/"+string(reason))
		})
	}
}

func TestBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{Budget: budget.TurnSpec{MaxCalls: 3, ToolTime: 10 * time.Second}})
		defer turn.End()
		results := run(t, turn, callOf("a", "alone", 8000), callOf("b", "alone", 8000), callOf("c", "work", 1000), callOf("d", "work", 1))
		want(t, results, "ok", "timeout/deadline", "denied/turn_budget", "denied/turn_budget")
		if left := results[0].RemainingMs; left == nil || *left != 2000 {
			t.Errorf("remaining after the first: %v", left)
		}
		if results[3].Decider != deciderBudget || !strings.HasPrefix(results[3].Message, "[DENIED]") {
			t.Errorf("%+v", results[3])
		}
	})
}

func TestTurnDeadlineAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{Budget: budget.TurnSpec{Deadline: 20 * time.Second, Reserve: time.Second}})
		defer turn.End()
		time.Sleep(15 * time.Second)
		results := run(t, turn, callOf("a", "work", 60_000))
		want(t, results, "timeout/deadline") // shrunk to what is left, less the reserve
		time.Sleep(2 * time.Second)
		want(t, run(t, turn, callOf("b", "work", 1)), "cancelled/timeout")
	})
}

func TestCanonical(t *testing.T) {
	same := []string{`{"a":1,"b":[2]}`, ` { "b" : [ 2 ], "a":1}`}
	if a, b := canonical([]byte(same[0])), canonical([]byte(same[1])); string(a) != string(b) {
		t.Errorf("%s, %s", a, b)
	}
	if a, b := canonical([]byte(`{"a":9007199254740993}`)), canonical([]byte(`{"a":9007199254740992}`)); string(a) == string(b) {
		t.Errorf("rounded: %s", a)
	}
	if got := canonical(nil); string(got) != "{}" {
		t.Errorf("%s", got)
	}
}

func TestBadInputHarmsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		results := run(t, turn, callOf("a", "work", 1), callOf("b", "nothing", 1), Call{ID: "c", Tool: "work", Problem: "the arguments are not JSON"}, callOf("d", "banned", 1))
		want(t, results, "ok", "invalid_args/call", "invalid_args/call", "denied/policy")
		for _, calls := range [][]Call{{callOf("a", "work", 1), callOf("a", "work", 1)}, {callOf("", "work", 1)}} {
			if _, err := turn.Run(t.Context(), calls); err == nil {
				t.Errorf("batch %v was taken", calls)
			}
		}
		if _, err := w.Begin(Spec{ParentID: "nobody"}); err == nil {
			t.Error("a child of nobody began")
		}
	})
}

func TestSessionStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		run(t, turn, callOf("a", "work", 40_000))
		r := run(t, turn, Call{ID: "s", Tool: StatusTool})[0]
		if got := string(r.Structured); !strings.Contains(got, `"callCount":2`) || !strings.Contains(got, `"timedOutTools":["work"]`) || !strings.Contains(got, `"callsLeft":48`) {
			t.Errorf("status %s", got)
		}
	})
}

// A status is short, whatever there is to tell, and is answered when no other
// call is.
func TestSessionStatusIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{Budget: budget.TurnSpec{MaxCalls: 2}})
		defer turn.End()
		turn.do(func() {
			for i := range 1000 {
				turn.info.TimedOutTools = append(turn.info.TimedOutTools, strings.Repeat("\x01", 100)+strconv.Itoa(i), "tool"+strconv.Itoa(i))
			}
		})
		w.config.Health = func() any { return map[string]string{"place": strings.Repeat("/sys", 1000)} }
		want(t, run(t, turn, callOf("a", "work", 1), callOf("b", "work", 2), callOf("c", "work", 3)), "ok", "ok", "denied/turn_budget")
		r := run(t, turn, Call{ID: "s", Tool: StatusTool})[0]
		got := string(r.Structured)
		if !r.OK() || len(got) >= 600 || !strings.Contains(got, `"callsLeft":0`) || !strings.Contains(got, `["tool999",`) || !strings.Contains(got, "more") || strings.Contains(got, "/sys") {
			t.Errorf("%s, %d bytes: %s", r.Status, len(got), got)
		}
	})
}

func TestFullJournalRefusesNewCallsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		time.AfterFunc(time.Second, func() {
			w.journal.mu.Lock()
			defer w.journal.mu.Unlock()
			w.journal.fail = errors.New("no space left on device")
		})
		want(t, run(t, turn, callOf("a", "work", 3000), callOf("b", "alone", 1)), "ok", "overloaded/journal")
		want(t, run(t, turn, callOf("c", "work", 1)), "overloaded/journal")
	})
}

func TestReplayIsWhatWasShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{AgentID: "agent"})
		var shown [][]byte
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for r, err := range turn.Events(t.Context(), 0) {
				if err != nil {
					t.Error(err)
				}
				shown = append(shown, r.JSON)
			}
		}()
		run(t, turn, callOf("a", "work", 6000), callOf("b", "alone", 1))
		turn.End()
		<-watched
		var kept [][]byte
		for i, r := range w.journal.list() {
			kept = append(kept, r.JSON)
			if r.Event.Seq != int64(i+1) {
				t.Errorf("event %d has seq %d", i+1, r.Event.Seq)
			}
		}
		if !reflect.DeepEqual(shown, kept) || len(shown) < 8 {
			t.Errorf("shown\n%s\nkept\n%s", shown, kept)
		}
	})
}
