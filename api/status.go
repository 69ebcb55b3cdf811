package api

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
	StatusNetworkLimit    Status = "network_limit"
	StatusLost            Status = "lost" // what became of it is not known: its worker, or toolhost call's daemon, has died or is out of reach
)

// Statuses of calls that have no outcome yet.
const (
	// StatusRunning is the one in progress events.
	StatusRunning Status = "running"
	// StatusOpen is the one in lists of calls.
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
