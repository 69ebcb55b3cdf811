package httpapi

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// session_status over HTTP is of the session, also once its turn's cap on calls is
// reached, and short.
func TestSessionStatusOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	status := func(id string) string {
		results, err := w.client.Run(w.ctx(), id, []api.Call{{ID: "status", Tool: "session_status"}})
		if err != nil || !results[0].OK() || len(results[0].Structured) >= 600 {
			t.Fatalf("%v, %+v", err, results)
		}
		return string(results[0].Structured)
	}
	first := w.begin(api.TurnSpec{SessionID: "mine"})
	if _, err := w.client.Run(w.ctx(), first, []api.Call{callOf("1", "work", fakeArgs{}), callOf("2", "work", fakeArgs{Say: "x"})}); err != nil {
		t.Fatal(err)
	}
	if err := w.client.End(w.ctx(), first); err != nil {
		t.Fatal(err)
	}
	second := w.begin(api.TurnSpec{SessionID: "mine", MaxCalls: 1})
	if _, err := w.client.Run(w.ctx(), second, []api.Call{callOf("1", "work", fakeArgs{}), callOf("2", "work", fakeArgs{})}); err != nil {
		t.Fatal(err)
	}
	if got := status(second); !strings.Contains(got, `"callCount":5,"callsLeft":0,`) {
		t.Errorf("of the session: %s", got)
	}
	if got := status(w.begin(api.TurnSpec{SessionID: "other"})); !strings.Contains(got, `"callCount":1,`) {
		t.Errorf("of another: %s", got)
	}
}
