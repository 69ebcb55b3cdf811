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

// A command's adapter is not one of the tool's processes.
func TestTheAdapterIsNotReaped(t *testing.T) {
	l := newLadder()
	l.meet([]int{7, 8})
	l.meet([]int{8})
	for command, want := range map[bool]int{false: 2, true: 1} {
		var k api.Kill
		if l.fill(&k, command); k.Reaped != want {
			t.Errorf("command %t: %d reaped, want %d", command, k.Reaped, want)
		}
	}
	var k api.Kill
	nothing := newLadder()
	if nothing.fill(&k, true); k.Reaped != 0 {
		t.Errorf("%d of no processes are reaped", k.Reaped)
	}
}
