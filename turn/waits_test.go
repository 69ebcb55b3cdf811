package turn

import (
	"testing"
	"testing/synctest"
	"time"
)

// A call that waits for its place with the supervisor does not run.
func TestACallThatWaitsIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		state := func() (string, bool) {
			synctest.Wait()
			info, _ := turn.Info()
			if len(info.CurrentTools) != 1 {
				t.Fatalf("calls %+v", info.CurrentTools)
			}
			return info.CurrentTools[0].State, info.CurrentTools[0].StartedAt.IsZero()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(t, turn, Call{ID: "a", Tool: "work", Arguments: []byte(`{"ms":2000,"queue":5000}`)})
		}()
		time.Sleep(time.Second)
		if got, unbegun := state(); got != "queued" || !unbegun {
			t.Errorf("while it waits: %s, begun %v", got, !unbegun)
		}
		time.Sleep(5 * time.Second)
		if got, unbegun := state(); got != "running" || unbegun {
			t.Errorf("then: %s, begun %v", got, !unbegun)
		}
		<-done
	})
}
