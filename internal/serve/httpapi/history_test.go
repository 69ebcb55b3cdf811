package httpapi

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Lists have a tenth of the time at most, and each waits for a second at most.
func TestListsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{lists: make(chan struct{}, 1)}
		began, last := time.Now(), time.Duration(0)
		for _, takes := range []time.Duration{10 * time.Millisecond, time.Minute, 0} {
			done, err := s.startList(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if rested, want := time.Since(began), min(9*last, time.Second); rested != want {
				t.Errorf("behind a list of %s the next has waited %s, want %s", last, rested, want)
			}
			time.Sleep(takes)
			done()
			began, last = time.Now(), takes
		}
	})
}

func TestHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	began := time.Now()
	first := w.begin(api.TurnSpec{TurnID: "first"})
	calls := []api.Call{callOf("1", "work", fakeArgs{}), callOf("2", "banned", fakeArgs{})}
	if _, err := w.client.Run(w.ctx(), first, calls); err != nil {
		t.Fatal(err)
	}
	w.begin(api.TurnSpec{TurnID: "second"})
	if err := w.client.End(w.ctx(), first); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		filter       api.Filter
		turns, calls int
	}{
		"all":    {api.Filter{}, 2, 2},
		"tool":   {api.Filter{Tool: "work"}, 1, 1},
		"status": {api.Filter{Status: "denied"}, 1, 1},
		"none":   {api.Filter{Status: "timeout"}, 0, 0},
		"limit":  {api.Filter{Limit: 1}, 1, 1},
		"since":  {api.Filter{Since: began}, 2, 2},
		"until":  {api.Filter{Until: began}, 0, 0},
	} {
		turns, err := w.client.PastTurns(w.ctx(), test.filter)
		if err != nil || len(turns) != test.turns {
			t.Errorf("%s: %d turns, %v", name, len(turns), err)
		}
		calls, err := w.client.PastCalls(w.ctx(), test.filter)
		if err != nil || len(calls) != test.calls {
			t.Errorf("%s: %d calls, %v", name, len(calls), err)
		}
	}
	if calls, err := w.client.PastCalls(w.ctx(), api.Filter{TurnID: "second"}); err != nil || len(calls) != 0 {
		t.Errorf("calls of another turn: %d, %v", len(calls), err)
	}
	for _, path := range []string{"/turns", "/calls", "/turns/first/events", "/turns/first/calls/2", "/turns?status=denied", "/turns/first/events?after=99"} {
		if status, body := w.send("GET", "/api/history"+path, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	past, err := w.client.PastResult(w.ctx(), "first", "2")
	if err != nil || past.Status != "denied" || past.TurnID != "first" {
		t.Errorf("%v, %+v", err, past)
	}
}

// A bound is one however long ago or far away it is.
func TestHistoryBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{TurnID: "one"})
	if _, err := w.client.Run(w.ctx(), id, []api.Call{callOf("1", "work", fakeArgs{})}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		"until=0001-01-01T00:00:00Z": 0, "until=0001-01-01T00:00:01Z": 0, "until=1500-01-01T00:00:00Z": 0, "until=9999-12-31T23:59:59Z": 1,
		"since=0001-01-01T00:00:00Z": 1, "since=1500-01-01T00:00:00Z": 1, "since=2500-01-01T00:00:00Z": 0, "since=9999-12-31T23:59:59Z": 0,
	} {
		for _, list := range []string{"turns", "calls"} {
			status, body := w.send("GET", "/api/history/"+list+"?"+query, "")
			var found map[string][]any
			if err := json.Unmarshal([]byte(body), &found); err != nil || status != http.StatusOK || len(found[list]) != want {
				t.Errorf("%s?%s: %d, %s; want %d", list, query, status, body, want)
			}
		}
	}
}
