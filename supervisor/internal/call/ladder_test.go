package call

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// A start that is late to be given up has no process that survives: its call
// came to what ended it.
func TestALateStarterIsNoSurvivor(t *testing.T) {
	for _, launching := range []bool{false, true} {
		o := bare(spec.Request{})
		o.state, o.found.Cause, o.found.Reason = stateKilling, outcome.CauseDeadline, "deadline"
		o.launching.Store(launching)
		o.to(survived, time.Now())
		o.complete()
		r := &api.Result{}
		if o.judge(r, o.found, 0); o.found.Survivors != 0 || r.Status != api.StatusTimeout {
			t.Errorf("%d survivors, %s", o.found.Survivors, r.Status)
		}
		if len(o.warnings) != 1 {
			t.Errorf("warnings %q", o.warnings)
		}
		if o.found.Ran != launching {
			t.Errorf("asked for a process: %t, but it may have run: %t", launching, o.found.Ran)
		}
	}
}
