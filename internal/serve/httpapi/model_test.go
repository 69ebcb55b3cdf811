package httpapi

import (
	"errors"
	"net/http"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// A host tells when its model streams; when the model's time is used up the turn is
// aborted, and no other round trip begins.
func TestModelTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{StreamDurationMs: 2000})
	told, err := w.client.Streaming(w.ctx(), id, false)
	if err != nil || told.Streaming || told.StreamMs != 0 || told.StreamLeftMs != 2000 {
		t.Errorf("at first: %+v, %v", told, err)
	}
	if told, err = w.client.Streaming(w.ctx(), id, true); err != nil || !told.Streaming || told.StreamLeftMs > 2000 {
		t.Errorf("streaming: %+v, %v", told, err)
	}
	err = w.client.Watch(w.ctx(), id, 0, func(e api.Record) bool {
		if e.Kind == api.EventTurnAbort && e.Reason != api.ReasonTimeout {
			t.Errorf("aborted for the reason %s", e.Reason)
		}
		return e.Kind != api.EventTurnAbort
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.client.Streaming(w.ctx(), id, true)
	refused, ok := errors.AsType[*api.Error](err)
	if !ok || refused.Status != http.StatusConflict {
		t.Errorf("another round trip: %v", err)
	}
	now, err := w.client.Turn(w.ctx(), id)
	if err != nil || now.Streaming || now.StreamMs < 2000 || now.StreamLeftMs != 0 {
		t.Errorf("at last: %+v, %v", now, err)
	}
	results, err := w.client.Run(w.ctx(), id, []api.Call{{ID: "a", Tool: "work"}})
	if err != nil || len(results) != 1 || results[0].Status != api.StatusCancelled || results[0].Reason != api.ReasonTimeout {
		t.Errorf("a call: %+v, %v", results, err)
	}
	if err := w.client.End(w.ctx(), id); err != nil {
		t.Error(err)
	}
	if _, err := w.client.Streaming(w.ctx(), id, true); err == nil {
		t.Error("a turn that is over hears the model")
	}
}
