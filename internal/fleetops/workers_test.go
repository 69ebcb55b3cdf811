package fleetops

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/exit"
)

// A worker that is to drain is waited for until it has, or cannot any more.
func TestAWorkerThatIsToDrain(t *testing.T) {
	for name, of := range map[string]struct {
		worker api.Worker
		over   bool
		fails  string
	}{
		"it drains":                 {api.Worker{Name: "w1", State: api.WorkerDraining}, false, ""},
		"it goes on for others":     {api.Worker{Name: "w1", State: api.WorkerDrained}, true, ""},
		"it has ended":              {api.Worker{Name: "w2", State: api.WorkerTaking}, true, ""},
		"it was started again":      {api.Worker{Name: "w1", State: api.WorkerTaking}, false, "worker w1 takes calls, for it was started again"},
		"it came back otherwise":    {api.Worker{Name: "w1", State: api.WorkerIncompatible}, false, "with another release"},
		"it is silent for a moment": {api.Worker{Name: "w1", State: api.WorkerSuspect, SilentMs: 20_000}, false, ""},
		"it is silent for long":     {api.Worker{Name: "w1", State: api.WorkerSuspect, SilentMs: 61_000}, false, "no sign of life for 1m1s"},
	} {
		over, err := isGone([]api.Worker{of.worker}, "w1")
		if over != of.over || (err != nil) != (of.fails != "") || err != nil && !strings.Contains(err.Error(), of.fails) {
			t.Errorf("%s: %t, %v", name, over, err)
		}
		if err != nil && exit.Of(err).Code != exit.Failed {
			t.Errorf("%s: the command fails with %d", name, exit.Of(err).Code)
		}
	}
}
