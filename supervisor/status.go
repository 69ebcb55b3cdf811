package supervisor

import (
	"maps"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolhost/toolhost/api"
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

// ErrorDomain is that of the google.rpc.ErrorInfo in a [GRPCStatus].
const ErrorDomain = "dev.toolhost"

// GRPCStatus returns a result as a host that speaks gRPC answers it: its Code and
// Message, and but for a success a google.rpc.ErrorInfo. The reason in that is the
// result's Status in capitals; its metadata has reason and decider, and where the
// Code is DEADLINE_EXCEEDED what Details has, under the same names.
func GRPCStatus(r *api.Result) *status.Status {
	code := GRPC(r.Status)
	for c, name := range codeNames {
		if name == r.Code {
			code = c
		}
	}
	if code == codes.OK {
		return status.New(code, "")
	}
	info := &errdetails.ErrorInfo{Reason: strings.ToUpper(string(r.Status)), Domain: ErrorDomain, Metadata: map[string]string{}}
	for key, value := range map[string]string{"reason": string(r.Reason), "decider": r.Decider} {
		if value != "" {
			info.Metadata[key] = value
		}
	}
	maps.Copy(info.Metadata, deadlineMetadata(r.Details))
	s := status.New(code, r.Message)
	if detailed, err := s.WithDetails(info); err == nil {
		return detailed
	}
	return s // a bug, and no reason to lose the rest
}

func deadlineMetadata(d *api.DeadlineDetails) map[string]string {
	if d == nil {
		return nil
	}
	return map[string]string{
		"profile_name":          d.ProfileName,
		"configured_timeout_ms": strconv.FormatInt(d.ConfiguredTimeoutMs, 10),
		"elapsed_ms":            strconv.FormatInt(d.ElapsedMs, 10),
	}
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
