package supervisor

import (
	"maps"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// GRPC returns an outcome as a gRPC status code. The Code of an unkillable
// call's result is that of what began its ladder instead.
func GRPC(s api.Status) codes.Code {
	return outcome.Code(s)
}

// ErrorDomain is that of the google.rpc.ErrorInfo in a [GRPCStatus].
const ErrorDomain = "dev.toolhost"

// GRPCStatus returns a result as a host that speaks gRPC answers it: its Code and
// Message, and but for a success a google.rpc.ErrorInfo. The reason in that is the
// result's Status in capitals; its metadata has reason and decider, and where the
// Code is DEADLINE_EXCEEDED what Details has, under the same names.
func GRPCStatus(r *api.Result) *status.Status {
	code := outcome.CodeOf(r)
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
