package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// What a call may run for is asked before a worker is told to start it, as on one machine
// once it has its slot: also of one that has secrets, or whose worker is told with the offer.
func TestWhatIsLeftBeforeTheGo(t *testing.T) {
	t.Parallel()
	h := newHeld(t, asItIs, "w1")
	for name, set := range map[string]func(*supervisor.Request){
		"plain":    func(*supervisor.Request) {},
		"secrets":  func(r *supervisor.Request) { r.Secrets = []supervisor.Secret{{Variable: "KEY", Value: "a long value"}} },
		"harmless": func(r *supervisor.Request) { r.Tool.ReadOnly = true },
	} {
		r := h.request(name)
		set(&r)
		r.Left = func() (time.Duration, error) { return 300 * time.Millisecond, nil }
		got := h.call(r) // which nobody releases
		if got.Status != api.StatusTimeout || *got.Timing.TimeoutMs != 300 || got.Timing.SourceDetail != "what is left of the turn" {
			t.Errorf("%s: %s %s %+v", name, got.Status, got.Message, got.Timing)
		}
		r.Left = func() (time.Duration, error) { return 0, errors.New("the turn's time is used up") }
		if got := h.call(r); got.OK() || got.Retry.SideEffects != "none" || !strings.Contains(got.Message, "used up") {
			t.Errorf("%s: %s %s", name, got.Status, got.Message)
		}
		r.Left = func() (time.Duration, error) { return budget.Infinite, nil }
		r.ID += "-again"
		h.release(name)
		if got := h.call(r); !got.OK() {
			t.Errorf("%s: %s %s", name, got.Status, got.Message)
		}
	}
}
