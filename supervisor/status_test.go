package supervisor

import (
	"maps"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolhost/toolhost/api"
)

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
