package turn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// kinds lists what the journal has of one call, by kind.
func kinds(w *world, call string) (list []api.EventKind) {
	for _, r := range w.journal.list() {
		if r.Event.CallID != call {
			continue
		}
		kind := r.Event.Kind
		if r.Event.Pending != nil {
			kind += map[bool]api.EventKind{true: " true", false: " false"}[*r.Event.Pending]
		}
		list = append(list, kind)
	}
	return list
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{Budget: budget.TurnSpec{Deadline: time.Minute}})
		defer turn.End()
		began := time.Now()
		r := run(t, turn, callOf("a", "ask", 1000))[0]
		if took := time.Since(began); took != 120*time.Second {
			t.Errorf("denied after %s, want 120s", took)
		}
		if r.Status != "denied" || r.Reason != "timeout" || r.Decider != "modeGate" || r.Timing.HumanWaitMs != 120_000 {
			t.Errorf("status %s, reason %s, decider %s, waited %d ms", r.Status, r.Reason, r.Decider, r.Timing.HumanWaitMs)
		}
		want := []api.EventKind{
			"tool_queued", api.AuditRequested, "interaction_pending true", api.EventInteractionRequest, api.EventInteractionResponse,
			"interaction_pending false", api.AuditTimedOut, api.AuditDenied, "tool_failed",
		}
		if got := kinds(w, "a"); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		// The turn's own minute stood still meanwhile.
		if left := r.RemainingMs; left == nil || *left != 50_000 {
			t.Errorf("remaining %v", left)
		}
	})
}

func TestHeadlessNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{Headless: true})
		defer turn.End()
		began := time.Now()
		results := run(t, turn, callOf("a", "ask", 1000), callOf("b", "wipe", 1000), callOf("c", "work", 1))
		want(t, results, "denied/headless", "denied/headless", "ok")
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %s", took)
		}
		if got := kinds(w, "a"); !slices.Equal(got, []api.EventKind{"tool_queued", api.AuditRequested, api.AuditDenied, "tool_failed"}) {
			t.Errorf("events %q", got)
		}
	})
}

// Nobody is asked to approve what cannot be called anyway.
func TestArgumentsAreCheckedBeforeAnApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		r := run(t, turn, callOf("a", "picky", 1))[0]
		if r.Status != "invalid_args" || r.Reason != "schema" || !strings.Contains(r.Message, "was not made: no such colour. Nothing was changed. Next: correct the call.") {
			t.Errorf("status %s, reason %s, %q", r.Status, r.Reason, r.Message)
		}
		if got := kinds(w, "a"); !slices.Equal(got, []api.EventKind{"tool_queued", "tool_failed"}) {
			t.Errorf("events %q", got)
		}
	})
}

// answer waits for the interaction of a call and answers it.
func answer(t *testing.T, turn *Turn, call string, a api.Answer) {
	t.Helper()
	for {
		synctest.Wait()
		info, _ := turn.Info()
		for _, p := range info.PendingInteractions {
			if p.CallID == call {
				if err := turn.Answer(p.ID, a); err != nil {
					t.Error(err)
				}
				if turn.Answer(p.ID, a) == nil {
					t.Error("a second answer was taken")
				}
				return
			}
		}
		time.Sleep(time.Millisecond)
	}
}

func TestApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		go func() {
			answer(t, turn, "no", api.Answer{By: "me"})
			answer(t, turn, "yes", api.Answer{Approve: true, Always: true, By: "me"})
		}()
		want(t, run(t, turn, callOf("no", "ask", 1), callOf("yes", "ask", 1), callOf("free", "work", 1)), "denied/user", "ok", "ok")
		want(t, run(t, turn, callOf("again", "ask", 2)), "ok")
	})
}

func TestDestructiveIsConfirmedWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		began := time.Now()
		want(t, run(t, turn, callOf("a", "wipe", 1)), "denied/timeout")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("denied after %s", took)
		}
	})
}

// scripted is an interactor that answers after a while, or cannot.
type scripted struct {
	after time.Duration
	a     api.Answer
	err   error
	ended chan error
}

func (s *scripted) Ask(ctx context.Context, _ api.Interaction) (api.Answer, error) {
	select {
	case <-time.After(s.after):
		return s.a, s.err
	case <-ctx.Done():
		s.ended <- ctx.Err()
		return api.Answer{}, ctx.Err()
	}
}

func TestInteractor(t *testing.T) {
	for name, test := range map[string]struct {
		scripted
		want string
	}{
		"approves":   {scripted{after: time.Second, a: api.Answer{Approve: true}}, "ok"},
		"denies":     {scripted{after: time.Second}, "denied/user"},
		"cannot ask": {scripted{err: errors.New("no terminal")}, "denied/timeout"},
		"too late":   {scripted{after: time.Hour, a: api.Answer{Approve: true}, ended: make(chan error, 1)}, "denied/timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				interactor := test.scripted
				interactor.ended = make(chan error, 1)
				w.config.Interactor = &interactor
				turn := w.begin(t, Spec{})
				defer turn.End()
				want(t, run(t, turn, callOf("a", "ask", 1)), test.want)
			})
		})
	}
}

func TestAbortClosesInteractions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		time.AfterFunc(time.Second, func() { turn.Abort("user") })
		want(t, run(t, turn, callOf("a", "ask", 1), callOf("b", "ask", 1)), "cancelled/user", "cancelled/user")
		if info, _ := turn.Info(); len(info.PendingInteractions) != 0 {
			t.Errorf("pending %+v", info.PendingInteractions)
		}
		want := []api.EventKind{
			"tool_queued", api.AuditRequested, "interaction_pending true", api.EventInteractionRequest, api.EventInteractionResponse,
			"interaction_pending false", "tool_failed", // nobody has decided anything
		}
		if got := kinds(w, "a"); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

func TestWaitFor(t *testing.T) {
	for _, test := range []struct {
		kind  api.InteractionKind
		asked time.Duration
		want  time.Duration
		warns bool
		fails bool
	}{
		{api.KindApproval, 0, 120 * time.Second, false, false},
		{api.KindConfirm, 0, 60 * time.Second, false, false},
		{api.KindConfirm, 5 * time.Second, 5 * time.Second, false, false},
		{api.KindPassword, 2 * time.Hour, time.Hour, true, false},
		{api.KindDeviceCode, 0, 0, false, true},
		{api.KindDeviceCode, 10 * time.Minute, 10 * time.Minute, false, false},
		{api.KindApproval, -1, 0, false, true},
		{api.KindApproval, budget.Infinite, 0, false, true},
		{api.KindEscalation, 0, 300 * time.Second, false, false},
		{api.KindEscalation, time.Second, 60 * time.Second, true, false},
		{api.KindEscalation, 2 * time.Hour, time.Hour, true, false},
	} {
		got, warning, err := WaitFor(test.kind, test.asked)
		if got != test.want || (warning != "") != test.warns || (err != nil) != test.fails {
			t.Errorf("%s, %s: %s, %q, %v", test.kind, test.asked, got, warning, err)
		}
	}
}

// How long humans are waited for comes from who asks, the turn, the tool and the
// configuration, in this order, within the bounds of tool and configuration.
func TestWaitsAreSet(t *testing.T) {
	of := func(name string, rank budget.Rank, a budget.Ask) map[string][]budget.Ask {
		a.Layer, a.Rank, a.TimeoutUnset = budget.LayerGlobal, rank, a.Timeout == 0
		return map[string][]budget.Ask{name: {a}}
	}
	configured := func(name string, a budget.Ask) map[string][]budget.Ask { return of(name, budget.RankProfile, a) }
	toolOwn := func(name string, a budget.Ask) map[string][]budget.Ask { return of(name, budget.RankTool, a) }
	type waits = map[api.InteractionKind]time.Duration
	for name, test := range map[string]struct {
		kind             api.InteractionKind
		configured, tool map[string][]budget.Ask
		turn             waits
		asked            time.Duration
		want             time.Duration // 0: no question is made
		warns            bool
	}{
		"kind":               {kind: api.KindApproval, want: 2 * time.Minute},
		"configured":         {kind: api.KindApproval, configured: configured(budget.Approval, budget.Ask{Timeout: 7 * time.Second}), want: 7 * time.Second},
		"confirm":            {kind: api.KindConfirm, configured: configured(budget.Confirm, budget.Ask{Timeout: 7 * time.Second}), want: 7 * time.Second},
		"another":            {kind: api.KindConfirm, configured: configured(budget.Approval, budget.Ask{Timeout: 7 * time.Second}), want: time.Minute},
		"tool":               {kind: api.KindApproval, configured: configured(budget.Approval, budget.Ask{Timeout: 7 * time.Second}), tool: toolOwn(budget.Approval, budget.Ask{Timeout: 5 * time.Second}), want: 5 * time.Second},
		"turn":               {kind: api.KindApproval, tool: toolOwn(budget.Approval, budget.Ask{Timeout: 5 * time.Second}), turn: waits{api.KindApproval: 20 * time.Minute}, want: 20 * time.Minute},
		"turn over maximum":  {kind: api.KindApproval, configured: configured(budget.Approval, budget.Ask{Max: time.Minute}), turn: waits{api.KindApproval: 20 * time.Minute}, want: time.Minute, warns: true},
		"over ceiling":       {kind: api.KindApproval, configured: configured(budget.Approval, budget.Ask{Timeout: 2 * time.Hour}), want: time.Hour, warns: true},
		"password":           {kind: api.KindPassword, tool: toolOwn(budget.Password, budget.Ask{Timeout: 5 * time.Second}), want: 5 * time.Second},
		"password asked":     {kind: api.KindPassword, tool: toolOwn(budget.Password, budget.Ask{Timeout: 5 * time.Second}), asked: 9 * time.Second, want: 9 * time.Second},
		"password too long":  {kind: api.KindPassword, tool: toolOwn(budget.Password, budget.Ask{Max: 5 * time.Second}), asked: 9 * time.Second, want: 5 * time.Second, warns: true},
		"device code":        {kind: api.KindDeviceCode, configured: configured(budget.DeviceCode, budget.Ask{Timeout: 10 * time.Minute}), want: 10 * time.Minute},
		"no device code":     {kind: api.KindDeviceCode},
		"bounds alone":       {kind: api.KindDeviceCode, configured: configured(budget.DeviceCode, budget.Ask{Max: time.Minute})},
		"escalation":         {kind: api.KindEscalation, configured: configured(budget.HITLEscalate, budget.Ask{Timeout: 90 * time.Second}), want: 90 * time.Second},
		"short escalation":   {kind: api.KindEscalation, configured: configured(budget.HITLEscalate, budget.Ask{Timeout: time.Second}), want: time.Second},
		"escalation of turn": {kind: api.KindEscalation, turn: waits{api.KindEscalation: time.Second}, want: time.Minute, warns: true},
		"questionnaire":      {kind: api.KindQuestionnaire, configured: configured(budget.Questionnaire, budget.Ask{Timeout: 3 * time.Second}), want: 3 * time.Second},
		"unknown":            {kind: "quiz", asked: time.Second},
		"profile of another": {kind: budget.HITLEscalate, asked: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				if test.configured != nil {
					w.config.Profiles = func() map[string][]budget.Ask { return test.configured }
				}
				tool := Tool{Request: supervisor.Request{Profiles: test.tool}, Mode: ModeAsk, Destructive: test.kind == api.KindConfirm}
				w.config.Tool = func(string) (Tool, bool) { return tool, true }
				turn := w.begin(t, Spec{Waits: test.turn})
				defer turn.End()
				began := time.Now()
				switch test.kind {
				case api.KindApproval, api.KindConfirm:
					r := run(t, turn, Call{ID: "a", Tool: "work"})[0]
					if r.Reason != api.ReasonTimeout || (len(r.Warnings) > 0) != test.warns {
						t.Errorf("%s, %s, warnings %q", r.Status, r.Reason, r.Warnings)
					}
				default:
					q := Question{Kind: test.kind, Prompt: "?", Timeout: test.asked, Tool: "work"}
					if test.kind == api.KindQuestionnaire {
						q.Schema = json.RawMessage(`{"type":"string"}`)
					}
					r, err := turn.Raise(t.Context(), q)
					if (err != nil) != (test.want == 0) || err == nil && r.Outcome != api.OutcomeTimedOut || (r.Warning != "") != test.warns {
						t.Errorf("%+v, %v", r, err)
					}
				}
				if took := time.Since(began); took != test.want {
					t.Errorf("a human had %s, want %s", took, test.want)
				}
			})
		})
	}
}

func TestNoWaitsWithoutEnd(t *testing.T) {
	for _, waits := range []map[api.InteractionKind]time.Duration{
		{api.KindApproval: 0}, {api.KindApproval: -1}, {api.KindApproval: budget.Infinite}, {"quiz": time.Second},
	} {
		if turn, err := New(Config{}).Begin(Spec{Waits: waits}); err == nil {
			turn.End()
			t.Errorf("%v is accepted", waits)
		}
	}
}

func TestPendingInteractionsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		for i := range 8 {
			go func() {
				_, _ = turn.Raise(t.Context(), Question{Kind: api.KindConfirm, Prompt: "?", Timeout: time.Duration(60-i) * time.Second})
			}()
		}
		synctest.Wait()
		info, _ := turn.Info()
		if list := info.PendingInteractions; len(list) != 8 || !slices.IsSortedFunc(list, func(a, b api.Interaction) int { return a.ExpiresAt.Compare(b.ExpiresAt) }) {
			t.Errorf("%+v", list)
		}
		turn.End()
	})
}
