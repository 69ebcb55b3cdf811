package turn

import (
	"testing"
	"testing/synctest"
)

// Waiting for its place in the turn is part of a call's time in the queue.
func TestTheQueueOfTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		defer turn.End()
		results := run(t, turn, callOf("a", "work", 300), callOf("b", "alone", 200), callOf("c", "work", 1))
		want(t, results, "ok", "ok", "ok")
		for i, ms := range []int64{0, 300, 500} {
			if got := results[i].Timing.QueueMs; got != ms {
				t.Errorf("call %d waited for %d ms, want %d", i, got, ms)
			}
		}
	})
}
