package httpapi

import (
	"slices"
	"testing"

	"github.com/toolhost/toolhost/api"
)

func TestClosingTheStreamAbortsItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s, err := w.client.Open(w.ctx(), api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Next()
	if err != nil {
		t.Fatal(err)
	}
	done := w.runLater(w.ctx(), first.TurnID, callOf("held", "work", fakeArgs{Hold: true}))
	w.fakes.await(t, "held", true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := w.wait(done)
	if r.err != nil || r.results[0].Status != api.StatusCancelled || r.results[0].Reason != api.ReasonDisconnect {
		t.Errorf("%v, %+v", r.err, r.results)
	}
	until(t, "the end of the turn", func() bool { _, active := w.turns.Turn(first.TurnID); return !active })
	var aborted []api.Reason
	err = w.client.Replay(w.ctx(), first.TurnID, 0, func(r api.Record) bool {
		if r.Kind == api.EventTurnAbort {
			aborted = append(aborted, r.Reason)
		}
		return true
	})
	if err != nil || !slices.Equal(aborted, []api.Reason{api.ReasonDisconnect}) {
		t.Errorf("turn_abort has the reasons %q (%v)", aborted, err)
	}
}
