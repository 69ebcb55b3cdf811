package turn

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// reaching is a call that wants a name, and waits so many milliseconds for an
// answer, or until there is one.
func reaching(id string, leave int) Call {
	return asking(id, "", func(a *fakeArgs) { a.Reach, a.Leave, a.Ms = "b.test:443", leave, 1 })
}

// A question about a name outlives its call: what is answered then counts for the
// next connection, or for the rest of the turn.
func TestAReachsQuestionStaysOpen(t *testing.T) {
	for name, test := range map[string]struct {
		answer       api.Answer
		second, last string
	}{
		"once":   {api.Answer{Approve: true}, "answered: true", "denied: cancelled"},
		"turn":   {api.Answer{Approve: true, Always: true}, "answered: true", "answered: true"},
		"denied": {api.Answer{}, "denied: cancelled", "denied: cancelled"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			turn := w.begin(t, Spec{})
			said := func(id string, want string) {
				if r := run(t, turn, reaching(id, 50))[0]; !strings.Contains(r.Text(), want) {
					t.Errorf("%s: %s said %q, want %q", name, id, r.Text(), want)
				}
			}
			said("a", "denied: cancelled")
			info, _ := turn.Info()
			if len(info.PendingInteractions) != 1 || info.PendingInteractions[0].Kind != api.KindApproval {
				t.Fatalf("%s: after the call: %+v", name, info.PendingInteractions)
			}
			if err := turn.Answer(info.PendingInteractions[0].ID, test.answer); err != nil {
				t.Error(err)
			}
			said("b", test.second)
			said("c", test.last)
			turn.End()
			if info, _ := turn.Info(); len(info.PendingInteractions) != 0 {
				t.Errorf("%s: after the turn: %+v", name, info.PendingInteractions)
			}
		})
	}
}

// A yes to one is for as long as that of any approval, for that name and tool alone.
func TestAReachForMoreThanATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := approving(ApprovalOptions{})
		of := Spec{Owner: "token a", SessionID: "s"}
		for i, test := range []struct {
			in   Spec
			to   string
			gets string
		}{
			{of, "b.test:443", "answered: true"},
			{Spec{Owner: "token a"}, "b.test:443", "answered: true"},
			{of, "c.test:443", "denied"},
			{of, "b.test:80", "denied"},
			{Spec{Owner: "token b"}, "b.test:443", "denied"},
		} {
			turn := w.begin(t, test.in)
			if i == 0 {
				go answer(t, turn, "x", api.Answer{Approve: true, Always: true, For: api.ForIdentity})
			}
			r := run(t, turn, asking("x", "", func(a *fakeArgs) { a.Reach, a.Leave, a.Ms = test.to, 50, 1 }))[0]
			if !strings.Contains(r.Text(), test.gets) {
				t.Errorf("%+v: %s, want %s", test, r.Text(), test.gets)
			}
			turn.End()
		}
	})
}

// One that is asked again takes the place of the one before it.
func TestAReachIsAskedAboutOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newWorld().begin(t, Spec{})
		defer turn.End()
		run(t, turn, reaching("a", 50))
		go answer(t, turn, "b", api.Answer{Approve: true})
		if r := run(t, turn, reaching("b", 0))[0]; !strings.Contains(r.Text(), "answered: true") {
			t.Error(r.Text())
		}
		if info, _ := turn.Info(); len(info.PendingInteractions) != 0 {
			t.Errorf("%+v", info.PendingInteractions)
		}
	})
}

// A yes to the question that stayed open counts for a connection that has just found
// none, and is about to ask.
func TestAYesThatComesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newWorld().begin(t, Spec{})
		defer turn.End()
		covered := approvable{tool: "ask", rule: "network b.test:443"}
		said := ""
		ask := func() {
			p := &pending{wait: time.Hour, Interaction: api.Interaction{Kind: api.KindApproval}, known: func() *api.Answer { return (&batch{t: turn}).approvedReach(covered) }}
			turn.request(p, func(outcome string, a api.Answer) { said = fmt.Sprint(outcome, a.Approve, a.Always) })
		}
		turn.do(func() {
			(&batch{t: turn}).keepYes(covered, api.Answer{Approve: true})
			ask()
		})
		if info, _ := turn.Info(); said != "answeredtrue false" || len(info.PendingInteractions) != 0 {
			t.Errorf("%q; open are %+v", said, info.PendingInteractions)
		}
		turn.do(ask) // once
		if info, _ := turn.Info(); len(info.PendingInteractions) != 1 {
			t.Errorf("open are %+v", info.PendingInteractions)
		}
	})
}

// A question that nobody waits for stops no clock, and has no end before the turn's.
func TestAQuestionThatStaysStopsNoClock(t *testing.T) {
	for name, deadline := range map[string]time.Duration{"without a deadline": 0, "with one": 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			turn := newWorld().begin(t, Spec{Budget: budget.TurnSpec{Deadline: deadline, Reserve: deadline / 20}})
			run(t, turn, reaching("a", 50))
			time.Sleep(10 * time.Minute)
			info, _ := turn.Info()
			if open := len(info.PendingInteractions) == 1; open != (deadline == 0) {
				t.Errorf("%s: %d questions are open", name, len(info.PendingInteractions))
			}
			if r := run(t, turn, callOf("b", "work", 1))[0]; (r.Status == api.StatusOK) != (deadline == 0) {
				t.Errorf("%s: a call after ten minutes: %s %s", name, r.Status, r.Reason)
			}
			turn.End()
		})
	}
}

// A yes that has let nothing through is the next connection's, once: of one that comes
// later, or waits already.
func TestAYesThatWasNotUsed(t *testing.T) {
	for name, after := range map[string]int{"before the next one comes": 1, "while it waits": 200} {
		synctest.Test(t, func(t *testing.T) {
			turn := newWorld().begin(t, Spec{})
			defer turn.End()
			first := asking("a", "", func(a *fakeArgs) { a.Reach, a.Unused, a.Ms = "b.test:443", after, 100 })
			go answer(t, turn, "a", api.Answer{Approve: true, By: "alice"})
			run(t, turn, first)
			said := []string{run(t, turn, reaching("b", 1000))[0].Text(), run(t, turn, reaching("c", 50))[0].Text()}
			if !strings.Contains(said[0], "answered: true") || !strings.Contains(said[1], "denied: cancelled") {
				t.Errorf("%s: %q", name, said)
			}
		})
	}
}

// An answer that comes as the tool gives up is either the call's, or counts afterwards as
// one to a question that stays open does: who has given it is not asked again.
func TestAnAnswerThatComesAsTheToolGivesUp(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			turn := newWorld().begin(t, Spec{})
			defer turn.End()
			go func() {
				time.Sleep(50 * time.Millisecond)
				info, _ := turn.Info()
				for _, p := range info.PendingInteractions {
					if err := turn.Answer(p.ID, api.Answer{Approve: true}); err != nil {
						t.Error(err)
					}
				}
			}()
			first := run(t, turn, reaching("a", 50))[0].Text()
			second := run(t, turn, reaching("b", 50))[0].Text()
			if !strings.Contains(first+second, "answered: true") {
				t.Fatalf("%q, and then %q", first, second)
			}
		})
	}
}

// Two yeses are for two connections: each to the name that it was given for, and each once.
func TestTwoYesesThatWereNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newWorld().begin(t, Spec{})
		defer turn.End()
		b := &batch{t: turn}
		covered, other := approvable{tool: "ask", rule: "network b.test:443"}, approvable{tool: "ask", rule: "network c.test:443"}
		var said []string
		wait := func(c approvable) {
			turn.request(b.reachQuestion(&entry{}, c, "", time.Hour), func(_ string, a api.Answer) { said = append(said, c.rule[8:]+" "+a.By) })
		}
		turn.do(func() {
			wait(other)
			turn.once[other.reach()] = []api.Answer{{Approve: true, By: "eve"}} // as if it came in the same moment
			for _, by := range []string{"alice", "bob"} {
				b.keepYes(covered, api.Answer{Approve: true, By: by})
			}
			for range 3 {
				wait(covered)
			}
			b.keepYes(covered, api.Answer{Approve: true, By: "carol"})
		})
		if got := strings.Join(said, ", "); got != "b.test:443 alice, b.test:443 bob, b.test:443 carol" {
			t.Error(got)
		}
	})
}
