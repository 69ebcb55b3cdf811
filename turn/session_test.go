package turn

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/budget"
)

func statusOf(t *testing.T, turn *Turn) string {
	t.Helper()
	return string(run(t, turn, Call{ID: "status", Tool: StatusTool})[0].Structured)
}

// What a model learns is of its session: of turns that are over, and of those that
// go on beside its own. The bounds are the turn's.
func TestStatusOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		first := w.begin(t, Spec{SessionID: "s"})
		run(t, first, callOf("a", "work", 40_000), callOf("b", "work", 1))
		first.End()
		beside := w.begin(t, Spec{SessionID: "s"})
		defer beside.End()
		run(t, beside, callOf("a", "work", 2_000))
		second := w.begin(t, Spec{SessionID: "s", Budget: budget.TurnSpec{MaxCalls: 5}})
		defer second.End()
		run(t, second, callOf("a", "work", 1_000), callOf("b", "alone", 1_000))
		got := statusOf(t, second)
		for _, want := range []string{`"callCount":6,`, `"callsLeft":2,`, `"timedOutTools":["work"]`, `"toolTimeMs":34000,`} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %s", got, want)
			}
		}
		other, none := w.begin(t, Spec{SessionID: "other"}), w.begin(t, Spec{})
		defer other.End()
		defer none.End()
		for _, turn := range []*Turn{other, none} {
			if got := statusOf(t, turn); !strings.Contains(got, `"callCount":1,`) || !strings.Contains(got, `"timedOutTools":[]`) || !strings.Contains(got, `"toolTimeMs":0,`) {
				t.Errorf("a turn of another session tells %s", got)
			}
		}
	})
}

// Turns that run at once count their time once, and a human's time apart.
func TestClocksOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		a, b := w.begin(t, Spec{SessionID: "s"}), w.begin(t, Spec{SessionID: "s"})
		defer a.End()
		defer b.End()
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(t, a, callOf("a", "work", 3_000))
		}()
		run(t, b, callOf("b", "work", 2_000))
		<-done
		if got := statusOf(t, b); !strings.Contains(got, `"callCount":3,`) || !strings.Contains(got, `"toolTimeMs":3000,`) {
			t.Errorf("%s", got)
		}
	})
}

// Sessions are forgotten, the one that has been idle for longest first, and never
// one with a turn.
func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		kept := w.begin(t, Spec{SessionID: "kept"})
		defer kept.End()
		run(t, kept, callOf("a", "work", 1))
		for i := range maxSessions + 100 {
			w.begin(t, Spec{SessionID: "s" + strconv.Itoa(i)}).End()
			time.Sleep(time.Millisecond)
		}
		if n := len(w.sessions); n > maxSessions {
			t.Errorf("%d sessions are remembered", n)
		}
		if w.sessions["\x00kept"] == nil || w.sessions["\x00s0"] != nil || w.sessions["\x00s"+strconv.Itoa(maxSessions)] == nil {
			t.Error("others than the oldest are forgotten")
		}
		if got := statusOf(t, kept); !strings.Contains(got, `"callCount":2,`) {
			t.Errorf("%s", got)
		}
	})
}
