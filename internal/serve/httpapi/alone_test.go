package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A batch in a turn of its own: both are over, and on record, with the answer.
func TestABatchInATurnOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	results, err := w.client.RunTurn(w.ctx(), api.TurnSpec{TurnID: "t", AgentID: "a"}, []api.Call{callOf("1", "work", fakeArgs{}), callOf("2", "work", fakeArgs{})})
	if err != nil || len(results) != 2 || !results[0].OK() || results[1].CallID != "2" || results[1].TurnID != "t" {
		t.Fatalf("%v, %+v", err, results)
	}
	if active, err := w.client.Active(w.ctx()); err != nil || len(active) != 0 {
		t.Errorf("%v, still active: %+v", err, active)
	}
	past, err := w.client.PastTurns(w.ctx(), api.Filter{})
	if err != nil || len(past) != 1 || past[0].Ended.IsZero() || past[0].AgentID != "a" || past[0].Calls != 2 {
		t.Errorf("%v, on record: %+v", err, past)
	}
}

// Its stream has all of the turn, from its beginning to its end.
func TestAStreamOfATurnOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, id := range []string{"", "named"} {
		var kinds []api.EventKind
		results, err := w.client.RunTurnEvents(w.ctx(), api.TurnSpec{TurnID: id}, []api.Call{callOf("1", "work", fakeArgs{Chatter: 1})}, func(e api.Record) { kinds = append(kinds, e.Kind) })
		if err != nil || len(results) != 1 {
			t.Fatalf("%v, %+v", err, results)
		}
		want := []api.EventKind{api.EventTurnStart, api.EventQueued, api.EventStarted, api.EventOutput, api.EventFinished, api.EventTurnEnd}
		if !slices.Equal(kinds, want) {
			t.Errorf("turn %q: kinds %q, want %q", id, kinds, want)
		}
	}
}

// A batch that cannot be run leaves no turn, active or on record.
func TestARefusedBatchLeavesNoTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	call := callOf("1", "work", fakeArgs{})
	_, err := w.client.RunTurn(w.ctx(), api.TurnSpec{TurnID: "t"}, []api.Call{call, call})
	if refused, ok := errors.AsType[*api.Error](err); !ok || refused.Status != http.StatusBadRequest {
		t.Errorf("two calls of one id: %v", err)
	}
	if past, err := w.client.PastTurns(w.ctx(), api.Filter{}); err != nil || len(past) != 0 {
		t.Errorf("%v, on record: %+v", err, past)
	}
	if _, err := w.client.RunTurn(w.ctx(), api.TurnSpec{TurnID: "t"}, []api.Call{call}); err != nil {
		t.Errorf("its id is taken: %v", err)
	}
}

// A client that goes away takes the turn with it.
func TestATurnOfItsOwnEndsWithItsClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for name, run := range map[string]func(context.Context, api.TurnSpec, []api.Call) error{
		"answer": func(ctx context.Context, spec api.TurnSpec, calls []api.Call) error {
			return second(w.client.RunTurn(ctx, spec, calls))
		},
		"stream": func(ctx context.Context, spec api.TurnSpec, calls []api.Call) error {
			return second(w.client.RunTurnEvents(ctx, spec, calls, func(api.Record) {}))
		},
	} {
		ctx, leave := context.WithCancel(w.ctx())
		ended := make(chan error, 1)
		go func() {
			ended <- run(ctx, api.TurnSpec{TurnID: name}, []api.Call{callOf(name, "work", fakeArgs{Hold: true})})
		}()
		w.fakes.await(t, name, true)
		leave()
		if err := <-ended; err == nil {
			t.Errorf("%s: no error", name)
		}
		w.fakes.await(t, name, false)
		wait.Until(t, name+" is over", func() bool { _, active := w.turns.Turn(name); return !active })
	}
}

// A call's turn of its own is one below the call's.
func TestACallsTurnOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	parent := w.begin(api.TurnSpec{SessionID: "s"})
	call := w.child(api.Place{CallID: "c", TurnID: parent, SessionID: "s"})
	results, err := call.RunTurn(w.ctx(), api.TurnSpec{}, []api.Call{callOf("1", "work", fakeArgs{})})
	if err != nil || len(results) != 1 || !results[0].OK() {
		t.Fatalf("%v, %+v", err, results)
	}
	var start api.Event
	if err := w.client.Watch(w.ctx(), results[0].TurnID, 0, func(e api.Record) bool { start = e.Event; return false }); err != nil || start.ParentID != parent || start.SessionID != "s" {
		t.Errorf("%v, began with %+v", err, start)
	}
}

// A name that is on record is refused, and nothing runs.
func TestATurnOfItsOwnHasItsOwnName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, status := range []int{0, http.StatusConflict, http.StatusConflict} {
		results, err := w.client.RunTurn(w.ctx(), api.TurnSpec{TurnID: "t"}, []api.Call{callOf("1", "work", fakeArgs{})})
		refused, _ := errors.AsType[*api.Error](err)
		if status == 0 && (err != nil || !results[0].OK()) || status != 0 && (refused == nil || refused.Status != status) {
			t.Errorf("%v, %+v", err, results)
		}
	}
}

// The bodies of a call's requests count for who owns its turn.
func TestBodiesOfACallAreItsOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	parent, _ := w.turns.Turn(w.begin(api.TurnSpec{}))
	r := httptest.NewRequest("POST", "/api/turns", nil)
	c := &children{of: api.Place{CallID: "c", TurnID: parent.ID()}, owner: parent.Owner()}
	key := bodyKey(r.WithContext(context.WithValue(r.Context(), childrenKey{}, c)), c.caller())
	if key == "" || key != parent.Owner() {
		t.Errorf("they count for %q, not for %q", key, parent.Owner())
	}
}
