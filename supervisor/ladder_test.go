package supervisor

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

// A start that is late to be given up has no process that survives: its call
// came to what ended it.
func TestALateStarterIsNoSurvivor(t *testing.T) {
	for _, launching := range []bool{false, true} {
		c := (&Supervisor{}).newCall(Request{})
		c.state, c.cause, c.reason = stateKilling, causeDeadline, "deadline"
		c.launching.Store(launching)
		c.giveUp(time.Now())
		e := c.evidence()
		if c.kill.survivors != 0 || classify(e).status != api.StatusTimeout {
			t.Errorf("%d survivors, %+v", c.kill.survivors, classify(e))
		}
		if len(c.warnings) != 1 {
			t.Errorf("warnings %q", c.warnings)
		}
		if e.ran != launching {
			t.Errorf("asked for a process: %t, but it may have run: %t", launching, e.ran)
		}
	}
}
