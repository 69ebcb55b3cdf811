package supervisor

import (
	"errors"
	"maps"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolhost/toolhost/api"
)

// A deadline that was passed is told with its profile, as configured and elapsed,
// wherever it was passed.
func TestDetailsOfADeadline(t *testing.T) {
	timing := api.Timing{Profile: "message_route", TimeoutMs: new(int64(10_000)), ElapsedMs: 10_004}
	want := api.DeadlineDetails{ProfileName: "message_route", ConfiguredTimeoutMs: 10_000, ElapsedMs: 10_004}
	refused := &refusal{status: api.StatusTimeout, err: errors.New("why"), describing: &api.Result{Timing: timing}}
	described, c := &api.Result{}, (&Supervisor{}).newCall(Request{Name: "t"})
	c.fillOutcome(described, evidence{startErr: refused})
	c.tellDescribe(described, refused)
	killed := &api.Result{Timing: timing}
	(&Supervisor{}).newCall(Request{Name: "t"}).fillOutcome(killed, evidence{cause: causeDeadline, ran: true})
	stuck := &api.Result{Timing: timing}
	(&Supervisor{}).newCall(Request{Name: "t"}).fillOutcome(stuck, evidence{cause: causeDeadline, ran: true, survivors: 1})
	for name, r := range map[string]*api.Result{"of a description": described, "of a call": killed, "of one that cannot be killed": stuck} {
		if r.Code != "DEADLINE_EXCEEDED" || r.Details == nil || *r.Details != want {
			t.Errorf("%s: %s, %+v", name, r.Code, r.Details)
		}
	}
	endless := &api.Result{Timing: api.Timing{Profile: "tool_call", ElapsedMs: 7}}
	(&Supervisor{}).newCall(Request{Name: "t"}).fillOutcome(endless, evidence{cause: causeIdle, ran: true})
	if d := endless.Details; d == nil || *d != (api.DeadlineDetails{ProfileName: "tool_call", ElapsedMs: 7}) {
		t.Errorf("without a timeout: %+v", d)
	}
	aborted := &api.Result{Timing: timing}
	(&Supervisor{}).newCall(Request{Name: "t"}).fillOutcome(aborted, evidence{cause: causeAbort, ran: true})
	if aborted.Details != nil {
		t.Errorf("of an abort: %+v", aborted.Details)
	}
}

// A host that speaks gRPC answers a result with google.rpc's details.
func TestGRPCStatus(t *testing.T) {
	late := &api.Result{Status: api.StatusUnkillable, Code: "DEADLINE_EXCEEDED", Reason: "deadline", Message: "late", Details: &api.DeadlineDetails{ProfileName: "tool_call", ConfiguredTimeoutMs: 300, ElapsedMs: 302}}
	for _, test := range []struct {
		result *api.Result
		code   codes.Code
		reason string
		want   map[string]string
	}{
		{late, codes.DeadlineExceeded, "UNKILLABLE", map[string]string{"reason": "deadline", "profile_name": "tool_call", "configured_timeout_ms": "300", "elapsed_ms": "302"}},
		{
			Verdict{Status: api.StatusDenied, Reason: "timeout", Decider: "modeGate"}.Result(), codes.PermissionDenied, "DENIED",
			map[string]string{"reason": "timeout", "decider": "modeGate"},
		},
		{&api.Result{Status: api.StatusTimeout}, codes.DeadlineExceeded, "TIMEOUT", map[string]string{}},
	} {
		s, _ := status.FromError(GRPCStatus(test.result).Err()) // as it comes to a client
		if s.Code() != test.code || s.Message() != test.result.Message || len(s.Details()) != 1 {
			t.Fatalf("%v, want %s", s, test.code)
		}
		info, _ := s.Details()[0].(*errdetails.ErrorInfo)
		if info.GetReason() != test.reason || info.GetDomain() != ErrorDomain || !maps.Equal(info.GetMetadata(), test.want) {
			t.Errorf("%v, want %s %v", info, test.reason, test.want)
		}
	}
	if s := GRPCStatus(Verdict{Status: api.StatusOK}.Result()); s.Code() != codes.OK || s.Err() != nil || len(s.Details()) > 0 {
		t.Errorf("of a success: %v", s)
	}
}
