package outcome

import (
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

// advise says whether and how to call again: what never started, and what is
// confirmed to be harmless, can be.
func (e Evidence) advise(r *api.Result, t Terms) {
	r.Retry.SideEffects = "possible"
	if !e.began() || t.ReadOnly {
		r.Retry.SideEffects = "none"
	}
	r.Retry.Retryable = Retryable(r) && (!e.began() || t.ReadOnly || t.Idempotent)
	r.Retry.Hint = HintOf(r)
	switch {
	case r.Status == api.StatusTimeout && e.Cause == CauseDeadline:
		suggestTimeout(r, t)
	case r.Status == api.StatusTimeout && e.Cause == CauseIdle:
		r.Retry.Hint = "take smaller steps, each of which says something"
	case r.Status == api.StatusTimeout: // more time is not what was wanting
		r.Retry.Hint = "take smaller steps"
	case r.Status == api.StatusProtocolError && t.Adapter:
		r.Retry.Hint = "tell who made the server"
	}
}

// Retryable says that the same call is not bound to end the same way,
// nor against what somebody has decided.
func Retryable(r *api.Result) bool {
	switch r.Status {
	case api.StatusOK, api.StatusInvalidArgs, api.StatusDenied, api.StatusPolicyViolation:
		return false
	case api.StatusCancelled:
		return r.Reason != api.ReasonUser && r.Reason != api.ReasonParent
	case api.StatusStartFailed:
		return !toBeCorrected[r.Reason]
	}
	return true
}

// toBeCorrected are the reasons for which a tool does not start until the call,
// its settings or its executable are others.
var toBeCorrected = map[api.Reason]bool{
	api.ReasonNotFound: true, api.ReasonNotExecutable: true, api.ReasonTool: true, api.ReasonCommand: true, api.ReasonDir: true,
	api.ReasonPolicy: true, api.ReasonLimits: true, api.ReasonKeep: true, api.ReasonCall: true,
}

// suggestTimeout names four times the timeout, as far as a caller may ask.
func suggestTimeout(r *api.Result, t Terms) {
	if t.Timeout >= t.longest() {
		return
	}
	r.Retry.SuggestedTimeoutMs = new(min(4*t.Timeout, t.longest()).Milliseconds())
	if t.AsksTime {
		r.Retry.Hint = "ask for more time or do less in one call"
	}
}

var hints = map[api.Status]string{
	api.StatusTimeout:       "do less in one call",
	api.StatusOOM:           "do less in one call, or have the operator raise the memory limit",
	api.StatusPidsLimit:     "start fewer processes, or have the operator raise the pids limit",
	api.StatusCPULimit:      "do less in one call, or have the operator raise the CPU time limit",
	api.StatusNetworkLimit:  "do less over the network in one call, or have the operator raise the limit",
	api.StatusOutputLimit:   "write less, or have the operator raise the output limit",
	api.StatusOverloaded:    "wait and call again",
	api.StatusCollateral:    "call again",
	api.StatusInvalidArgs:   "correct the arguments",
	api.StatusCrashed:       "look at the tool's stderr",
	api.StatusNoResult:      "look at the tool's stderr",
	api.StatusProtocolError: "rebuild the tool with a matching SDK",
}

// startHints are those of the reasons for which a tool has not started: only some
// of them are the tool's.
var startHints = map[api.Reason]string{
	api.ReasonStart:         "correct the tool's set-up",
	api.ReasonServer:        "correct the server's set-up",
	api.ReasonSlow:          lateHint,
	api.ReasonHost:          "leave the tool as it is and call again later; if it fails again, have the operator look at the host",
	api.ReasonSandbox:       "leave the tool as it is, and have the operator give the host what it lacks",
	api.ReasonAdapter:       "leave the tool as it is, and have the operator install toolhost in full",
	api.ReasonPolicy:        "correct what the call is granted",
	api.ReasonSecrets:       "correct the secrets that the call is given",
	api.ReasonLimits:        "correct the limits of the call",
	api.ReasonKeep:          "correct how the tool's process is kept",
	api.ReasonDir:           "correct the working directory, or grant it to the call",
	api.ReasonTool:          "correct the path or the name of the tool",
	api.ReasonCommand:       "correct the command",
	api.ReasonCall:          "correct the call",
	api.ReasonNotFound:      "correct the command, or have it installed",
	api.ReasonNotExecutable: "correct the command, or make the file a program that can be executed",
}

// HintOf is what to do about a result, as far as its status and reason say.
func HintOf(r *api.Result) string {
	switch {
	case r.Status == api.StatusStartFailed && r.Reason == api.ReasonServer && slowServer(r):
		return "set a higher startTimeout, or see why the server is slow"
	case r.Status == api.StatusStartFailed:
		return startHints[r.Reason]
	case r.Status == api.StatusOOM && r.Reason == api.ReasonShareMemory:
		return "make fewer calls at once, or have the operator raise the quota of memory"
	case r.Status == api.StatusCrashed && r.Reason == api.ReasonLauncher:
		return "call again; where it happens again, have the operator find what kills processes on this machine"
	case r.Usage.PidsLimitHits > 0 && (r.Status == api.StatusToolError || r.Status == api.StatusCrashed): // mostly for that
		return hints[api.StatusPidsLimit]
	}
	return hints[r.Status]
}

// slowServer reports whether a server has only not been ready in time.
func slowServer(r *api.Result) bool {
	return r.ToolError != nil && strings.Contains(text.FirstLine(r.ToolError.Message), text.MoreStartTime)
}
