package supervisor

import "github.com/toolhost/toolhost/api"

// Status is a call's one outcome.
//
// Deprecated: use [api.Status].
type Status = api.Status

// The outcomes.
//
// Deprecated: use those of package api.
const (
	StatusOK              = api.StatusOK
	StatusToolError       = api.StatusToolError
	StatusTimeout         = api.StatusTimeout
	StatusCancelled       = api.StatusCancelled
	StatusDenied          = api.StatusDenied
	StatusOOM             = api.StatusOOM
	StatusPidsLimit       = api.StatusPidsLimit
	StatusOutputLimit     = api.StatusOutputLimit
	StatusCPULimit        = api.StatusCPULimit
	StatusCrashed         = api.StatusCrashed
	StatusNoResult        = api.StatusNoResult
	StatusStartFailed     = api.StatusStartFailed
	StatusProtocolError   = api.StatusProtocolError
	StatusPolicyViolation = api.StatusPolicyViolation
	StatusCollateral      = api.StatusCollateral
	StatusUnkillable      = api.StatusUnkillable
	StatusOverloaded      = api.StatusOverloaded
	StatusInvalidArgs     = api.StatusInvalidArgs
	StatusRunning         = api.StatusRunning
)

// Statuses returns all outcomes, sorted.
//
// Deprecated: use [api.Statuses].
func Statuses() []Status { return api.Statuses() }

// AbortReason says who ended a call.
//
// Deprecated: use [api.Reason].
type AbortReason = api.Reason

// Reasons for an abort.
//
// Deprecated: use those of package api.
const (
	AbortUser       = api.ReasonUser
	AbortParent     = api.ReasonParent
	AbortDisconnect = api.ReasonDisconnect
	AbortTimeout    = api.ReasonTimeout
	AbortError      = api.ReasonError
	AbortShutdown   = api.ReasonShutdown
)
