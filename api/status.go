package api

// Status is the outcome of a call.
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
	StatusNetworkLimit    Status = "network_limit"
	StatusLost            Status = "lost" // the outcome is unknown: the call's worker, or toolhost call's daemon, died or is unreachable
)

// Statuses of calls that have no outcome yet.
const (
	// StatusRunning is used in progress events.
	StatusRunning Status = "running"
	// StatusOpen is used in lists of calls.
	StatusOpen Status = "open"
)

// Statuses returns all outcomes, sorted.
func Statuses() []Status {
	return []Status{
		StatusCancelled, StatusCollateral, StatusCPULimit, StatusCrashed, StatusDenied, StatusInvalidArgs, StatusLost, StatusNetworkLimit, StatusNoResult,
		StatusOK, StatusOOM, StatusOutputLimit, StatusOverloaded, StatusPidsLimit, StatusPolicyViolation,
		StatusProtocolError, StatusStartFailed, StatusTimeout, StatusToolError, StatusUnkillable,
	}
}
