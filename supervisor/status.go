package supervisor

import (
	"github.com/toolhost/toolhost/api"
	"google.golang.org/grpc/codes"
)

var grpcCodes = map[api.Status]codes.Code{
	api.StatusOK: codes.OK, api.StatusToolError: codes.Unknown, api.StatusTimeout: codes.DeadlineExceeded,
	api.StatusCancelled: codes.Canceled, api.StatusDenied: codes.PermissionDenied,
	api.StatusOOM: codes.ResourceExhausted, api.StatusPidsLimit: codes.ResourceExhausted,
	api.StatusOutputLimit: codes.ResourceExhausted, api.StatusCPULimit: codes.ResourceExhausted,
	api.StatusCrashed: codes.Internal, api.StatusNoResult: codes.Internal, api.StatusProtocolError: codes.Internal,
	api.StatusStartFailed: codes.FailedPrecondition, api.StatusPolicyViolation: codes.PermissionDenied,
	api.StatusCollateral: codes.Aborted, api.StatusUnkillable: codes.Internal,
	api.StatusOverloaded: codes.Unavailable, api.StatusInvalidArgs: codes.InvalidArgument,
}

// GRPC returns an outcome as a gRPC status code. The Code of an unkillable
// call's result is that of what began its ladder instead.
func GRPC(s api.Status) codes.Code {
	if code, ok := grpcCodes[s]; ok {
		return code
	}
	return codes.Unknown
}

// codeNames are gRPC's names on wires (the grpc package spells them otherwise).
var codeNames = map[codes.Code]string{
	codes.OK: "OK", codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN",
	codes.InvalidArgument: "INVALID_ARGUMENT", codes.DeadlineExceeded: "DEADLINE_EXCEEDED",
	codes.PermissionDenied: "PERMISSION_DENIED", codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED",
	codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
}

// cause is what began a call's kill ladder, set once.
type cause string

const (
	causeNone        cause = ""
	causeDeadline    cause = "deadline"
	causeTotal       cause = "total"
	causeIdle        cause = "idle"
	causeAbort       cause = "abort"
	causeOOM         cause = "oom"
	causeCPU         cause = "cpu"
	causeOutputTotal cause = "outputTotal"
	causeProtocol    cause = "protocol"
	causeCollateral  cause = "collateral"
)

// status is the outcome that a cause leads to.
func (c cause) status() api.Status {
	switch c {
	case causeDeadline, causeTotal, causeIdle:
		return api.StatusTimeout
	case causeAbort:
		return api.StatusCancelled
	case causeOOM:
		return api.StatusOOM
	case causeCPU:
		return api.StatusCPULimit
	case causeOutputTotal:
		return api.StatusOutputLimit
	case causeProtocol:
		return api.StatusProtocolError
	case causeCollateral:
		return api.StatusCollateral
	}
	return ""
}
