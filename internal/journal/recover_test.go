package journal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

// records are a turn's events as a turn makes them.
func records(events ...api.Event) (list []turn.Record) {
	for i, e := range events {
		e.Seq, e.TurnID, e.Time = int64(i+1), "t", start.Add(time.Duration(i)*time.Second)
		raw, _ := json.Marshal(e)
		list = append(list, turn.Record{Record: api.Record{Event: e, JSON: raw}})
	}
	return list
}

func output(call, stream, text string) api.Event {
	return api.Event{Kind: "tool_output", CallID: call, Tool: "x", Stream: stream, Content: &api.Content{Type: "text", Text: text}}
}

// An open turn whose owner is gone is told from one that goes on.
func TestTurnsOfNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	if err := (Turns{j}).Append(records(api.Event{Kind: api.EventTurnStart})...); err != nil {
		t.Fatal(err)
	}
	r := mustRead(t, dir)
	for _, want := range []bool{false, true} {
		turns, err := r.Turns(api.Filter{})
		if err != nil || len(turns) != 1 || turns[0].State != api.TurnOpen || turns[0].HostDied != want {
			t.Errorf("%+v, %v; want one whose host died: %v", turns, err, want)
		}
		if !want {
			mustClose(t, j)
		}
	}
}

// A call that died with its host says what is known of it, and has the output that is on record.
func TestRecoveredResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	queued := func(id string) api.Event { return api.Event{Kind: api.EventQueued, CallID: id, Tool: "x"} }
	err := Turns{j}.Append(records(
		api.Event{Kind: api.EventTurnStart}, queued("ran"), queued("asked"), queued("waits"), queued("answered"),
		api.Event{Kind: api.EventStarted, CallID: "ran", Tool: "x"}, output("ran", "content", "half "), output("ran", "stderr", "noise"),
		output("ran", "content", "of it"),
		api.Event{Kind: api.EventInteractionPending, CallID: "asked", InteractionID: "i", Pending: new(true)},
		api.Event{Kind: api.EventInteractionRequest, CallID: "asked", InteractionID: "i"},
		api.Event{Kind: api.EventInteractionPending, CallID: "answered", InteractionID: "k", Pending: new(true)},
		api.Event{Kind: api.EventInteractionRequest, CallID: "answered", InteractionID: "k"},
		api.Event{Kind: api.EventInteractionResponse, CallID: "answered", InteractionID: "k", Outcome: api.OutcomeAnswered},
		api.Event{Kind: api.EventInteractionPending, CallID: "answered", InteractionID: "k", Pending: new(false)},
	)...)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	j = mustOpen(t, dir, Options{})
	for range 2 {
		if err := j.Recover(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	r := mustRead(t, dir)
	for call, want := range map[string]struct{ message, effects, text string }{
		"ran":      {"died while tool \"x\" ran", "possible", "half of it"},
		"asked":    {"nothing was changed", "none", ""},
		"waits":    {"not on record that tool \"x\" had begun", "possible", ""},
		"answered": {"not on record that tool \"x\" had begun", "possible", ""},
	} {
		raw, err := r.Result("t", call)
		var result api.Result
		if err == nil {
			err = json.Unmarshal(raw, &result)
		}
		if err != nil || result.Status != api.StatusCancelled || result.Reason != "error" || result.CallID != call || result.TurnID != "t" {
			t.Errorf("%s: %v, %s", call, err, raw)
		}
		if seen := result.Output.Content; seen.SeenBytes != int64(len(want.text)) || seen.KeptBytes != seen.SeenBytes {
			t.Errorf("%s: %+v of %q", call, seen, want.text)
		}
		if elapsed := map[string]int64{"ran": 3000}[call]; result.Timing.ElapsedMs != elapsed {
			t.Errorf("%s: ran for %d ms as far as is on record, want %d", call, result.Timing.ElapsedMs, elapsed)
		}
		if !strings.Contains(result.Message, want.message) || !strings.HasPrefix(result.Message, "[CANCELLED] ") ||
			result.Retry.SideEffects != want.effects || result.Text() != want.text || result.Partial != (want.text != "") {
			t.Errorf("%s: %q, %+v, %q", call, result.Message, result.Retry, result.Text())
		}
	}
	expectGrammar(t, r, "t")
	turns, err := r.Turns(api.Filter{})
	if last := start.Add(14 * time.Second); err != nil || len(turns) != 1 || !turns[0].Ended.Equal(last) {
		t.Errorf("the turn ends at %v, want that of its last event, %v (%v)", turns, last, err)
	}
	for _, stored := range collect(t, r, "t", 0) {
		var e api.Event
		must(json.Unmarshal(stored.JSON, &e))
		if made := e.Seq > 15; made != strings.HasPrefix(e.Message, "its host had died: recorded at 20") || made && !stored.Time.Equal(e.Time) {
			t.Errorf("recorded later, %t: %s", made, stored.JSON)
		}
	}
	if next := mustOpenAgain(t, j, dir); len(next.Unfinished()) != 0 {
		t.Errorf("still open: %+v", next.Unfinished())
	}
}

func mustOpenAgain(t *testing.T, j *Journal, dir string) *Journal {
	t.Helper()
	mustClose(t, j)
	return mustOpen(t, dir, Options{})
}

// A turn that was aborted already is not aborted again.
func TestRecoverAborted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	if err := (Turns{j}).Append(records(api.Event{Kind: api.EventTurnStart}, api.Event{Kind: api.EventTurnAbort, Reason: "user"})...); err != nil {
		t.Fatal(err)
	}
	j = mustOpenAgain(t, j, dir)
	if err := j.Recover(time.Now()); err != nil {
		t.Fatal(err)
	}
	turns, err := mustRead(t, dir).Turns(api.Filter{})
	if err != nil || len(turns) != 1 || turns[0].Reason != "user" || turns[0].State != api.TurnAborted || turns[0].Events != 3 {
		t.Errorf("%+v, %v", turns, err)
	}
}

// The place of an event is never given to another, also when all events are gone.
func TestPositionsAreNeverUsedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	last := int64(0)
	for n := range 3 {
		id := strings.Repeat("t", n+1)
		j := mustOpen(t, dir, Options{})
		mustAppend(t, j, wholeTurn(id, "x", "ok")...)
		r := mustRead(t, dir)
		for _, e := range collect(t, r, id, 0) {
			if e.Pos <= last {
				t.Errorf("event %d of %s has the place %d after %d", e.Seq, id, e.Pos, last)
			}
			last = e.Pos
		}
		mustClose(t, r)
		mustClose(t, j)
		j = mustOpen(t, dir, Options{Retention: Retention{MaxAge: time.Nanosecond}, Now: func() time.Time { return start.Add(time.Hour) }})
		if _, err := j.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustClose(t, j)
	}
}

// A call that no worker has any more, and that ran here after all, has ended with the host.
func TestRecoveredAfterAWorkerGaveItBack(t *testing.T) {
	for worker, status := range map[string]api.Status{"w1": api.StatusLost, "": api.StatusCancelled} {
		c := lostCall{}
		for _, at := range []string{"w1", worker} {
			c.take(api.Event{Kind: api.EventPlaced, EventProcesses: api.EventProcesses{Worker: at, Attempt: 1}})
		}
		if got := c.result("turn"); got.Status != status || (got.Where == nil) != (worker == "") {
			t.Errorf("%q: %s %+v", worker, got.Status, got.Where)
		}
	}
}
