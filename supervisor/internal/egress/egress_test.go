package egress

import (
	"context"
	"errors"
	"testing"

	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// Nobody has a relay of a supervisor that is closed, and nobody waits for one without end.
func TestNoRelayAfterTheEnd(t *testing.T) {
	h := New(&process.Maker{}, nil, nil, nil)
	h.turn <- struct{}{} // a relay is being started
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.relayFor(gone, newSession(nil, "s")); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that has ended: %v", err)
	}
	<-h.turn
	h.Close()
	if err := h.relayFor(t.Context(), newSession(nil, "s")); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}
