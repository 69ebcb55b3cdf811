package httpapi

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
)

// childDoor is a call's way in; end closes it and waits.
type childDoor struct {
	*client.Client
	end func()
}

func (w *world) child(of api.Place) childDoor {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "turns")
	l, err := net.Listen("unix", path)
	if err != nil {
		w.t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { w.server.ServeChild(l, of) })
	c, err := client.New(client.Options{Socket: path})
	if err != nil {
		w.t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = l.Close()
		served.Wait()
		c.Close()
	})
	w.t.Cleanup(end)
	return childDoor{c, end}
}

// A call's own turns are below its own, and the rest of the API is not there.
func TestACallBeginsTurnsBelowItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	parent := w.begin(api.TurnSpec{SessionID: "s", AgentID: "a"})
	other := w.begin(api.TurnSpec{})
	call := w.child(api.Place{CallID: "c", TurnID: parent, SessionID: "s", AgentID: "a"})
	begun, err := call.Begin(w.ctx(), api.TurnSpec{})
	if err != nil || begun.ParentTurnID != parent || begun.SessionID != "s" || begun.AgentID != "a" || begun.Depth != 1 {
		t.Fatalf("%+v, %v", begun, err)
	}
	results, err := call.Run(w.ctx(), begun.TurnID, []api.Call{callOf("1", "work", fakeArgs{})})
	if err != nil || len(results) != 1 || !results[0].OK() {
		t.Errorf("%v, %v", results, err)
	}
	if list, err := call.Tools(w.ctx()); err != nil || len(list.Tools) == 0 {
		t.Errorf("tools: %+v, %v", list, err)
	}
	below, err := call.Begin(w.ctx(), api.TurnSpec{ParentTurnID: begun.TurnID})
	if err != nil || below.ParentTurnID != begun.TurnID || below.Depth != 2 {
		t.Errorf("below that: %+v, %v", below, err)
	}
	refused := map[string]error{
		"another's turn":    second(call.Turn(w.ctx(), other)),
		"its own turn":      second(call.Turn(w.ctx(), parent)),
		"a call in it":      second(call.Run(w.ctx(), parent, []api.Call{callOf("2", "work", fakeArgs{})})),
		"an end of it":      call.End(w.ctx(), other),
		"an abort of it":    call.Abort(w.ctx(), parent),
		"its events":        call.Watch(w.ctx(), other, 0, func(api.Record) bool { return true }),
		"all turns":         second(call.Active(w.ctx())),
		"questions":         second(call.Interactions(w.ctx())),
		"an answer":         call.Answer(w.ctx(), "x", api.Answer{Approve: true}),
		"a question":        second(call.Raise(w.ctx(), begun.TurnID, api.Question{Kind: api.KindConfirm, Prompt: "?"})),
		"what was":          second(call.PastTurns(w.ctx(), api.Filter{})),
		"a login":           second(call.LoginLink(w.ctx())),
		"another parent":    second(call.Begin(w.ctx(), api.TurnSpec{ParentTurnID: other})),
		"another session":   second(call.Begin(w.ctx(), api.TurnSpec{SessionID: "t"})),
		"a name of its own": second(call.RunTurn(w.ctx(), api.TurnSpec{TurnID: other}, nil)),
		"a name":            second(call.Begin(w.ctx(), api.TurnSpec{TurnID: other})),
		"an encoded slash":  second(call.Turn(w.ctx(), "x/../"+other)),
	}
	for what, err := range refused {
		if refusal, ok := errors.AsType[*api.Error](err); !ok || refusal.Status != http.StatusForbidden && refusal.Status != http.StatusNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What a call may not use is not taken for one of its turns.
func TestACallMayNotAskForAllTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	call := w.child(api.Place{CallID: "c", TurnID: w.begin(api.TurnSpec{})})
	refusal, ok := errors.AsType[*api.Error](second(call.Active(w.ctx())))
	if !ok || refusal.Status != http.StatusForbidden || refusal.Message != "a call may not use /api/turns/active" {
		t.Errorf("%+v", refusal)
	}
}

func second[T any](_ T, err error) error { return err }

// What a call has begun ends with it, whatever it does.
func TestACallsTurnsEndWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	parent := w.begin(api.TurnSpec{})
	call := w.child(api.Place{CallID: "c", TurnID: parent})
	begun, err := call.Begin(w.ctx(), api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	idle, err := call.Begin(w.ctx(), api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan batchRan, 1)
	go func() {
		results, err := call.Run(w.ctx(), begun.TurnID, []api.Call{callOf("held", "work", fakeArgs{Hold: true})})
		ended <- batchRan{results, err}
	}()
	w.fakes.await(t, "held", true)
	call.end()
	w.fakes.await(t, "held", false)
	w.wait(ended)
	for _, id := range []string{begun.TurnID, idle.TurnID} {
		if _, active := w.turns.Turn(id); active {
			t.Errorf("%s goes on", id)
		}
	}
	if _, err := w.client.Turn(w.ctx(), parent); err != nil {
		t.Errorf("the call's own turn: %v", err)
	}
}

// The turns of one call are bounded, at once and below one another.
func TestACallsTurnsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	parent := w.begin(api.TurnSpec{})
	call := w.child(api.Place{CallID: "c", TurnID: parent})
	var flood sync.WaitGroup
	var mu sync.Mutex
	begun, refused := []string{}, 0
	for range 3 * maxChildren {
		flood.Go(func() {
			one, err := call.Begin(w.ctx(), api.TurnSpec{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				begun = append(begun, one.TurnID)
			} else if strings.Contains(err.Error(), "too many turns") {
				refused++
			} else {
				t.Error(err)
			}
		})
	}
	flood.Wait()
	if len(begun) != maxChildren || refused != 2*maxChildren {
		t.Errorf("%d begun and %d refused", len(begun), refused)
	}
	if err := call.End(w.ctx(), begun[0]); err != nil {
		t.Error(err)
	}
	if _, err := call.Begin(w.ctx(), api.TurnSpec{}); err != nil {
		t.Errorf("after an end: %v", err)
	}
}
