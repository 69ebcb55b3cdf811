package outcome

import (
	"google.golang.org/grpc/codes"

	"github.com/toolhost/toolhost/api"
)

var grpcCodes = map[api.Status]codes.Code{
	api.StatusOK: codes.OK, api.StatusToolError: codes.Unknown, api.StatusTimeout: codes.DeadlineExceeded,
	api.StatusCancelled: codes.Canceled, api.StatusDenied: codes.PermissionDenied,
	api.StatusOOM: codes.ResourceExhausted, api.StatusPidsLimit: codes.ResourceExhausted,
	api.StatusOutputLimit: codes.ResourceExhausted, api.StatusCPULimit: codes.ResourceExhausted,
	api.StatusNetworkLimit: codes.ResourceExhausted, api.StatusLost: codes.Unknown,
	api.StatusCrashed: codes.Internal, api.StatusNoResult: codes.Internal, api.StatusProtocolError: codes.Internal,
	api.StatusStartFailed: codes.FailedPrecondition, api.StatusPolicyViolation: codes.PermissionDenied,
	api.StatusCollateral: codes.Aborted, api.StatusUnkillable: codes.Internal,
	api.StatusOverloaded: codes.Unavailable, api.StatusInvalidArgs: codes.InvalidArgument,
}

// Code is an outcome as a gRPC status code.
func Code(s api.Status) codes.Code {
	if code, ok := grpcCodes[s]; ok {
		return code
	}
	return codes.Unknown
}

// code of an unkillable call is that of what began its ladder.
func (e Evidence) code(status api.Status) codes.Code {
	if status == api.StatusUnkillable && e.Cause != CauseNone {
		return Code(e.Cause.Status())
	}
	return Code(status)
}

// codeNames are gRPC's names on wires (the grpc package spells them otherwise).
var codeNames = map[codes.Code]string{
	codes.OK: "OK", codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN",
	codes.InvalidArgument: "INVALID_ARGUMENT", codes.DeadlineExceeded: "DEADLINE_EXCEEDED",
	codes.PermissionDenied: "PERMISSION_DENIED", codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED",
	codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
}

// CodeName is an outcome's code by its name on wires.
func CodeName(s api.Status) string { return codeNames[Code(s)] }

// CodeOf is the code in a result, which may be another than its status has.
func CodeOf(r *api.Result) codes.Code {
	for c, name := range codeNames {
		if name == r.Code {
			return c
		}
	}
	return Code(r.Status)
}

// deadlineDetails is nil for a Code that has none.
func deadlineDetails(r *api.Result) *api.DeadlineDetails {
	if r.Code != codeNames[codes.DeadlineExceeded] {
		return nil
	}
	d := &api.DeadlineDetails{ProfileName: r.Timing.Profile, ElapsedMs: r.Timing.ElapsedMs}
	if r.Timing.TimeoutMs != nil {
		d.ConfiguredTimeoutMs = *r.Timing.TimeoutMs
	}
	return d
}
