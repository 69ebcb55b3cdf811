package supervisor

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// A start that is late to be given up has no process that survives: its call
// came to what ended it.
func TestALateStarterIsNoSurvivor(t *testing.T) {
	for _, launching := range []bool{false, true} {
		c := bare(Request{})
		c.state, c.cause, c.reason = stateKilling, outcome.CauseDeadline, "deadline"
		c.launching.Store(launching)
		c.giveUp(time.Now())
		e, r := c.evidence(), &api.Result{}
		if c.fillOutcome(r, e); c.kill.survivors != 0 || r.Status != api.StatusTimeout {
			t.Errorf("%d survivors, %s", c.kill.survivors, r.Status)
		}
		if len(c.warnings) != 1 {
			t.Errorf("warnings %q", c.warnings)
		}
		if e.Ran != launching {
			t.Errorf("asked for a process: %t, but it may have run: %t", launching, e.Ran)
		}
	}
}
