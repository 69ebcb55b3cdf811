package outcome

import (
	"errors"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// A deadline that was passed is told with its profile, as configured and elapsed,
// wherever it was passed.
func TestDetailsOfADeadline(t *testing.T) {
	timing := api.Timing{Profile: "message_route", TimeoutMs: new(int64(10_000)), ElapsedMs: 10_004}
	want := api.DeadlineDetails{ProfileName: "message_route", ConfiguredTimeoutMs: 10_000, ElapsedMs: 10_004}
	refused := &Refusal{Status: api.StatusTimeout, Err: errors.New("why"), Describing: &api.Result{Timing: timing}}
	described := worded(&api.Result{}, Evidence{StartErr: refused}, Terms{})
	refused.Word(described, Terms{})
	killed := worded(&api.Result{Timing: timing}, Evidence{Cause: CauseDeadline, Ran: true}, Terms{})
	stuck := worded(&api.Result{Timing: timing}, Evidence{Cause: CauseDeadline, Ran: true, Survivors: 1}, Terms{})
	for name, r := range map[string]*api.Result{"of a description": described, "of a call": killed, "of one that cannot be killed": stuck} {
		if r.Code != "DEADLINE_EXCEEDED" || r.Details == nil || *r.Details != want {
			t.Errorf("%s: %s, %+v", name, r.Code, r.Details)
		}
	}
	endless := worded(&api.Result{Timing: api.Timing{Profile: "tool_call", ElapsedMs: 7}}, Evidence{Cause: CauseIdle, Ran: true}, Terms{})
	if d := endless.Details; d == nil || *d != (api.DeadlineDetails{ProfileName: "tool_call", ElapsedMs: 7}) {
		t.Errorf("without a timeout: %+v", d)
	}
	aborted := worded(&api.Result{Timing: timing}, Evidence{Cause: CauseAbort, Ran: true}, Terms{})
	if aborted.Details != nil {
		t.Errorf("of an abort: %+v", aborted.Details)
	}
}
