package fleet_test

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Calls at workers are counted, and those that wait for one.
func TestCallsAtWorkersAreCounted(t *testing.T) {
	t.Parallel()
	h := newHeld(t, asItIs, "w1")
	are := func(given, waiting int) {
		t.Helper()
		wait.Until(t, "they are counted", func() bool {
			g, w := h.fleet.Calls()
			return g == given && w == waiting
		})
	}
	a := h.busy("a", "w1")
	are(1, 0)
	b := h.start("b")
	are(1, 1)
	h.ends("a", a, "w1")
	h.ends("b", b, "w1")
	are(0, 0)
}

// A call on a worker has the moments that metrics are made of.
func TestMomentsOfACallOnAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "w1")
	w.work("w1", nil)
	const grace = 100 * time.Millisecond
	c := w.deaf(grace)
	c.Abort(api.ReasonUser)
	await(t, c.Done())
	m := c.Result().Marks
	if m.Ready.Before(m.Admitted) || m.Kill.Sub(m.Stop) < grace || !m.Empty.After(m.Kill) || m.Empty.After(m.Done) || m.Stop.Before(m.Ready) {
		t.Errorf("%+v", m)
	}
}
