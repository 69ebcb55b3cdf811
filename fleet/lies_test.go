package fleet

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// A worker says neither how a call begins and ends, nor anything of turns.
func TestEventsThatAreNotAWorkers(t *testing.T) {
	events := make(chan api.Event, 16)
	c := &remote{request: supervisor.Request{ID: "own"}}
	c.events = relayOf(supervisor.Request{ID: "own", Events: events})
	for _, kind := range []api.EventKind{api.EventFinished, api.EventFailed, api.EventQueued, api.EventTurnEnd, "unheard", api.EventProgress} {
		raw, err := json.Marshal(api.Event{Kind: kind, CallID: "another", Time: time.Unix(1, 0)})
		if err != nil {
			t.Fatal(err)
		}
		c.event(raw, nil)
	}
	close(events)
	for _, want := range []api.EventKind{api.EventQueued, api.EventProgress} {
		if e := <-events; e.Kind != want || e.CallID != "own" || e.Time.Unix() == 1 {
			t.Errorf("%s of %s at %s, want %s", e.Kind, e.CallID, e.Time, want)
		}
	}
	if e, more := <-events; more {
		t.Errorf("%s is passed on", e.Kind)
	}
}

// What is kept of a call's output is bounded, whatever its worker says of that.
func TestOutputThatIsNotCounted(t *testing.T) {
	c := &remote{request: supervisor.Request{ID: "own"}}
	c.events = relayOf(c.request)
	out := func(content api.Content) {
		raw, err := json.Marshal(api.Event{Kind: api.EventOutput, Stream: "content", Content: &content})
		if err != nil {
			t.Fatal(err)
		}
		c.event(raw, nil)
	}
	out(api.Content{Type: "json", LeftOutBytes: -1 << 60})
	for range 4 {
		out(api.Content{Type: strings.Repeat("t", 700<<10)})
		out(api.Content{Type: "blob", Data: make([]byte, 700<<10)})
	}
	var r api.Result
	c.partial.Fill(&r)
	held := 0
	for _, content := range r.Content {
		held += content.Bytes() + len(content.Type)
	}
	if held > 1<<20 || held < 700<<10 {
		t.Errorf("%d bytes are held, counted as %+v", held, r.Output.Content)
	}
}

// A result whose lists take far more to hold than to send is not read.
func TestAResultOfManyElements(t *testing.T) {
	for n, want := range map[int]api.Status{1000: api.StatusOK, 100_000: api.StatusLost} {
		c := &remote{f: &Fleet{}, request: supervisor.Request{ID: "own"}, given: &attempt{id: &fleetv1.Attempt{Worker: "w1"}}}
		c.result.Add(portable.Piece{Bytes: []byte(`{"callId":"own","status":"ok","rounds":[{}` + strings.Repeat(",{}", n) + `]}`)}, 1<<30, 1<<30)
		if got := c.complete(); got.Status != want {
			t.Errorf("%d rounds: %s", n, got.Message)
		}
	}
}

// What a refused call cannot have come to is not taken from a worker.
func TestRefusalsThatCannotBe(t *testing.T) {
	for status, want := range map[api.Status]api.Status{
		api.StatusTimeout: api.StatusTimeout, api.StatusUnkillable: api.StatusStartFailed, api.StatusLost: api.StatusStartFailed, "made up": api.StatusStartFailed,
	} {
		raw, err := json.Marshal(api.Result{CallID: "own", Status: status})
		if err != nil {
			t.Fatal(err)
		}
		c := &remote{request: supervisor.Request{ID: "own"}}
		c.refusals = []refusal{{of: &attempt{id: &fleetv1.Attempt{Worker: "w"}}, never: &fleetv1.Never{Why: fleetv1.Why_WHY_CANNOT, Result: raw}}}
		if r := c.asRefused("it cannot"); r.Status != want {
			t.Errorf("a worker says %s: %s, want %s", status, r.Status, want)
		}
	}
}
