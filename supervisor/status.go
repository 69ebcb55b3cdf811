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

// GRPC returns the gRPC status code of an outcome. It may differ from the Code of
// an unkillable call's result, which depends on the cause of the kill ladder.
func GRPC(s api.Status) codes.Code {
	return outcome.Code(s)
}

// ErrorDomain is the domain of the google.rpc.ErrorInfo in a [GRPCStatus].
const ErrorDomain = "dev.toolhost"

// GRPCStatus returns a result as a gRPC status: its Code and Message and, unless it
// is a success, a google.rpc.ErrorInfo. The ErrorInfo's reason is the result's Status
// in capitals; its metadata holds reason and decider and, for DEADLINE_EXCEEDED, the
// fields of Details under the same names.
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
