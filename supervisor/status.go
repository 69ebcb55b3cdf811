package supervisor

import (
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
)

// Status is a call's one outcome.
type Status string

// The outcomes.
const (
	StatusOK              Status = "ok"
	StatusToolError       Status = "tool_error"
	StatusTimeout         Status = "timeout"
	StatusCancelled       Status = "cancelled"
	StatusDenied          Status = "denied"
	StatusOOM             Status = "oom"
	StatusPidsLimit       Status = "pids_limit"
	StatusOutputLimit     Status = "output_limit"
	StatusCPULimit        Status = "cpu_limit"
	StatusCrashed         Status = "crashed"
	StatusNoResult        Status = "no_result"
	StatusStartFailed     Status = "start_failed"
	StatusProtocolError   Status = "protocol_error"
	StatusPolicyViolation Status = "policy_violation"
	StatusCollateral      Status = "collateral"
	StatusUnkillable      Status = "unkillable"
	StatusOverloaded      Status = "overloaded"
	StatusInvalidArgs     Status = "invalid_args"
)

var grpcCodes = map[Status]codes.Code{
	StatusOK: codes.OK, StatusToolError: codes.Unknown, StatusTimeout: codes.DeadlineExceeded,
	StatusCancelled: codes.Canceled, StatusDenied: codes.PermissionDenied,
	StatusOOM: codes.ResourceExhausted, StatusPidsLimit: codes.ResourceExhausted,
	StatusOutputLimit: codes.ResourceExhausted, StatusCPULimit: codes.ResourceExhausted,
	StatusCrashed: codes.Internal, StatusNoResult: codes.Internal, StatusProtocolError: codes.Internal,
	StatusStartFailed: codes.FailedPrecondition, StatusPolicyViolation: codes.PermissionDenied,
	StatusCollateral: codes.Aborted, StatusUnkillable: codes.Internal,
	StatusOverloaded: codes.Unavailable, StatusInvalidArgs: codes.InvalidArgument,
}

// Statuses are all outcomes, sorted.
func Statuses() []Status { return slices.Sorted(maps.Keys(grpcCodes)) }

// GRPC is the outcome as a gRPC status code. The Code of an unkillable call's
// result is that of what began its ladder instead.
func (s Status) GRPC() codes.Code {
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
func (c cause) status() Status {
	switch c {
	case causeDeadline, causeTotal, causeIdle:
		return StatusTimeout
	case causeAbort:
		return StatusCancelled
	case causeOOM:
		return StatusOOM
	case causeCPU:
		return StatusCPULimit
	case causeOutputTotal:
		return StatusOutputLimit
	case causeProtocol:
		return StatusProtocolError
	case causeCollateral:
		return StatusCollateral
	}
	return ""
}
