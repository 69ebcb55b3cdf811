package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// raise asks in a turn, beside the test.
func (w *world) raise(ctx context.Context, id string, q api.Question) <-chan api.Raised {
	done := make(chan api.Raised, 1)
	go func() {
		r, err := w.client.Raise(ctx, id, q)
		if err != nil && ctx.Err() == nil {
			w.t.Errorf("%s: %v", q.Kind, err)
		}
		done <- r
	}()
	return done
}

// asked is the one question that waits.
func (w *world) asked() (i api.Interaction) {
	w.t.Helper()
	wait.Until(w.t, "a question", func() bool {
		list, err := w.client.Interactions(w.ctx())
		if err != nil || len(list) != 1 {
			return false
		}
		i = list[0]
		return true
	})
	return i
}

// A host asks for all that people can be asked for, and hears what comes of it.
func TestRaise(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{})
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	secret := json.RawMessage(`"hunter2"`)
	yes, no := api.Answer{Approve: true}, api.Answer{}
	for _, c := range []struct {
		ask     api.Question
		waits   int64
		answer  api.Answer
		outcome string
		value   string
	}{
		{api.Question{Kind: api.KindApproval, Prompt: "Go on?", Tool: "work"}, 120_000, api.Answer{Approve: true, Always: true}, "answered", ""},
		{api.Question{Kind: api.KindApproval, Prompt: "Go on?", TimeoutMs: 5000}, 5000, no, "denied", ""},
		{api.Question{Kind: api.KindConfirm, Prompt: "Wipe it?", Schema: json.RawMessage("null")}, 60_000, yes, "answered", ""},
		{api.Question{Kind: api.KindConfirm, Prompt: "Wipe it?"}, 60_000, api.Answer{Unanswered: "dismissed"}, "dismissed", ""},
		{api.Question{Kind: api.KindPassword, Prompt: "Password?"}, 120_000, api.Answer{Value: secret}, "answered", `"hunter2"`},
		{api.Question{Kind: api.KindDeviceCode, Prompt: "Enter ABCD at https://example.com", TimeoutMs: 600_000}, 600_000, yes, "answered", ""},
		{api.Question{Kind: api.KindQuestionnaire, Prompt: "How many?", Schema: schema}, 120_000, api.Answer{Value: json.RawMessage(`{"n":3}`)}, "answered", `{"n":3}`},
		{api.Question{Kind: api.KindEscalation, Prompt: "Take over", TimeoutMs: 1}, 60_000, yes, "answered", ""},
	} {
		done := w.raise(w.ctx(), id, c.ask)
		i := w.asked()
		hidden := c.ask.Kind == api.KindPassword
		if i.Kind != c.ask.Kind || i.Prompt != c.ask.Prompt || i.TimeoutMs != c.waits || i.Secret != hidden || !i.Host || i.Tool != c.ask.Tool || i.TurnID != id {
			t.Errorf("people see %+v", i)
		}
		if c.ask.Kind == api.KindQuestionnaire || hidden {
			if err := w.client.Answer(w.ctx(), i.ID, yes); err == nil {
				t.Errorf("%s is answered without a value", i.Kind)
			}
		}
		if err := w.client.Answer(w.ctx(), i.ID, c.answer); err != nil {
			t.Fatal(err)
		}
		r := <-done
		if r.InteractionID != i.ID || r.Outcome != c.outcome || string(r.Value) != c.value || r.By == "" || r.Approve != (c.answer.Approve && c.outcome == "answered") ||
			(r.Warning != "") != (c.ask.Kind == api.KindEscalation) {
			t.Errorf("%s: %+v", i.Kind, r)
		}
	}
	if r := <-w.raise(w.ctx(), id, api.Question{Kind: api.KindApproval, Prompt: "?", TimeoutMs: 20}); r.Outcome != "timeout" {
		t.Errorf("nobody answers: %+v", r)
	}
	if err := w.client.End(w.ctx(), id); err != nil {
		t.Fatal(err)
	}
	response, err := w.unix.Get("http://localhost/api/history/turns/" + id + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var record bytes.Buffer
	_, err = record.ReadFrom(response.Body)
	for _, kind := range []api.EventKind{api.EventInteractionRequest, api.EventInteractionResponse, api.AuditRequested, api.AuditAnswered, api.AuditTimedOut} {
		if err != nil || !strings.Contains(record.String(), string(kind)) {
			t.Errorf("no %s on record: %v", kind, err)
		}
	}
	if strings.Contains(record.String(), "hunter2") {
		t.Error("the password is on record")
	}
}

func TestRaiseHeadless(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{Headless: true})
	for schema, want := range map[string]string{`{"type":"string","default":"blue"}`: `"blue"`, `{"type":"string"}`: ""} {
		r := <-w.raise(w.ctx(), id, api.Question{Kind: api.KindQuestionnaire, Prompt: "?", Schema: json.RawMessage(schema)})
		if r.Outcome != "headless" || string(r.Value) != want {
			t.Errorf("%s: %+v", schema, r)
		}
	}
}

func TestRaiseRefusesNonsense(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{})
	for name, c := range map[string]struct {
		turn   string
		ask    api.Question
		status int
	}{
		"kind":            {id, api.Question{Kind: "quiz", Prompt: "?"}, http.StatusBadRequest},
		"no kind":         {id, api.Question{Prompt: "?"}, http.StatusBadRequest},
		"no prompt":       {id, api.Question{Kind: api.KindApproval}, http.StatusBadRequest},
		"long prompt":     {id, api.Question{Kind: api.KindApproval, Prompt: strings.Repeat("ü", 16<<10)}, http.StatusBadRequest},
		"no time":         {id, api.Question{Kind: api.KindDeviceCode, Prompt: "?"}, http.StatusBadRequest},
		"negative time":   {id, api.Question{Kind: api.KindApproval, Prompt: "?", TimeoutMs: -1}, http.StatusBadRequest},
		"no schema":       {id, api.Question{Kind: api.KindQuestionnaire, Prompt: "?"}, http.StatusBadRequest},
		"schema":          {id, api.Question{Kind: api.KindQuestionnaire, Prompt: "?", Schema: json.RawMessage(`{"type":"string","pattern":"("}`)}, http.StatusBadRequest},
		"call of no turn": {id, api.Question{Kind: api.KindApproval, Prompt: "?", CallID: "a"}, http.StatusBadRequest},
		"unknown turn":    {"nobody", api.Question{Kind: api.KindApproval, Prompt: "?"}, http.StatusNotFound},
	} {
		_, err := w.client.Raise(w.ctx(), c.turn, c.ask)
		if refused, ok := errors.AsType[*api.Error](err); !ok || refused.Status != c.status {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A question ends with the host that asks it, with the call that it is about, and
// with the turn.
func TestRaiseIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{})
	ctx, gone := context.WithCancel(w.ctx())
	done := w.raise(ctx, id, api.Question{Kind: api.KindApproval, Prompt: "?"})
	w.asked()
	gone()
	<-done
	wait.Until(t, "the question to be gone", func() bool {
		list, err := w.client.Interactions(w.ctx())
		return err == nil && len(list) == 0
	})

	ran := make(chan error, 1)
	go func() {
		_, err := w.client.Run(w.ctx(), id, []api.Call{{ID: "a", Tool: "work", Arguments: json.RawMessage(`{"say":"held","hold":true}`)}})
		ran <- err
	}()
	held := w.fakes.await(t, "held", true)
	done = w.raise(w.ctx(), id, api.Question{Kind: api.KindApproval, Prompt: "?", CallID: "a", Tool: "other"})
	if i := w.asked(); i.CallID != "a" || i.Tool != "work" {
		t.Errorf("people see %+v", i)
	}
	close(held.letGo)
	if r := <-done; r.Outcome != "cancelled" {
		t.Errorf("the call is over: %+v", r)
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}

	done = w.raise(w.ctx(), id, api.Question{Kind: api.KindEscalation, Prompt: "?"})
	w.asked()
	if err := w.client.Abort(w.ctx(), id); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Outcome != "cancelled" {
		t.Errorf("the turn is aborted: %+v", r)
	}
}
