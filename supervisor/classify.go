package supervisor

import (
	"context"
	"errors"
	"strconv"
	"syscall"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
)

// evidence is all that the outcome of a call is decided by.
type evidence struct {
	cause     cause
	reason    string
	final     *pluginv1.Result
	startErr  error
	streamErr error
	exited    bool
	exit      syscall.WaitStatus
	ran       bool
	survivors int
	usage     cgroup.Usage
}

// complete: a success was received in full. It counts whatever came after.
func (e evidence) complete() bool {
	if e.final == nil || e.brokeProtocol() {
		return false
	}
	exit := e.final.GetExit()
	return e.final.GetError() == nil && exit.GetCode() == 0 && exit.GetSignal() == ""
}

func (e evidence) brokeProtocol() bool {
	var broken *host.ProtocolError
	return errors.As(e.streamErr, &broken)
}

// Reasons within a status that others than this file give or look for.
const (
	// reasonHostMemory: all calls together had reached the host's total.
	reasonHostMemory = "hostMemory"
	// As env(1) tells them apart, by 127 and 126.
	reasonNotFound      = "not_found"
	reasonNotExecutable = "not_executable"
)

// outcome is what a call came to.
type outcome struct {
	status Status
	reason string
}

// classify decides the one outcome of a call. The order is the rule: a
// complete result counts, then what began the ladder, then the kernel's word on
// memory, and only then what the tool seems to have done.
func classify(e evidence) outcome {
	switch {
	case e.survivors > 0:
		return outcome{StatusUnkillable, e.reason}
	case e.complete():
		return outcome{StatusOK, ""}
	case e.cause == causeOOM && e.usage.OOMEvents+e.usage.OOMKills == 0 && e.usage.AncestorOOMKills > 0:
		return outcome{StatusOOM, reasonHostMemory}
	case e.cause != causeNone:
		return outcome{e.cause.status(), e.reason}
	case e.usage.OOMEvents > 0 || e.usage.OOMKills > 0:
		return outcome{StatusOOM, "memory"}
	case e.startErr != nil:
		return startOutcome(e.startErr)
	case e.brokeProtocol():
		return outcome{StatusProtocolError, "protocol"}
	case e.final != nil:
		return finalOutcome(e.final)
	}
	return deathOutcome(e)
}

func startOutcome(err error) outcome {
	var refused *refusal
	if errors.As(err, &refused) {
		return outcome{refused.status, refused.reason}
	}
	var overloaded *admission.OverloadedError
	if errors.As(err, &overloaded) {
		return outcome{StatusOverloaded, "admission"}
	}
	return outcome{StatusStartFailed, "start"}
}

// finalOutcome is that of a result which is no success.
func finalOutcome(final *pluginv1.Result) outcome {
	if final.GetExit().GetSignal() != "" {
		return outcome{StatusCrashed, "signal"}
	}
	switch final.GetError().GetKind() {
	case pluginv1.ToolError_KIND_INVALID_ARGUMENTS:
		return outcome{StatusInvalidArgs, "arguments"}
	case pluginv1.ToolError_KIND_COMMAND_NOT_FOUND:
		return outcome{StatusStartFailed, reasonNotFound}
	case pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE:
		return outcome{StatusStartFailed, reasonNotExecutable}
	case pluginv1.ToolError_KIND_PANIC:
		return outcome{StatusToolError, "panic"}
	}
	return outcome{StatusToolError, "error"}
}

// deathOutcome is that of a tool that is gone, or deaf, without a result.
func deathOutcome(e evidence) outcome {
	switch {
	case e.usage.PidsLimitHits > 0:
		return outcome{StatusPidsLimit, "pids"}
	case !e.exited:
		return outcome{StatusProtocolError, "connection closed"}
	case e.exit.Signaled() && e.exit.Signal() == syscall.SIGSYS:
		return outcome{StatusPolicyViolation, "seccomp"}
	case e.exit.Signaled():
		return outcome{StatusCrashed, "signal"}
	case e.exit.ExitStatus() == 0:
		return outcome{StatusNoResult, "exit"}
	}
	return outcome{StatusCrashed, "exit"}
}

// toolErrorOf is what the tool itself said, if it failed.
func toolErrorOf(e evidence) *ToolError {
	final := e.final
	switch {
	case e.brokeProtocol():
		return &ToolError{Kind: "protocol", Message: e.streamErr.Error()}
	case final.GetError() != nil:
		return &ToolError{Kind: toolErrorKinds[final.GetError().GetKind()], Message: final.GetError().GetMessage(), Stack: final.GetError().GetStack()}
	case final.GetExit().GetSignal() != "":
		return &ToolError{Kind: "signal", Message: "the command died of " + final.GetExit().GetSignal()}
	case final.GetExit().GetCode() != 0:
		return &ToolError{Kind: "exit", Message: "the command exited with status " + strconv.Itoa(int(final.GetExit().GetCode()))}
	case final == nil && e.startErr != nil && !errors.Is(e.startErr, context.Canceled):
		return &ToolError{Kind: "error", Message: e.startErr.Error()}
	}
	return nil
}

var toolErrorKinds = map[pluginv1.ToolError_Kind]string{
	pluginv1.ToolError_KIND_UNSPECIFIED:            "error",
	pluginv1.ToolError_KIND_ERROR:                  "error",
	pluginv1.ToolError_KIND_PANIC:                  "panic",
	pluginv1.ToolError_KIND_CANCELLED:              "cancelled",
	pluginv1.ToolError_KIND_INVALID_ARGUMENTS:      "invalid_arguments",
	pluginv1.ToolError_KIND_COMMAND_NOT_FOUND:      "command_not_found",
	pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE: "command_not_executable",
}

// exitOf is how the command, or else the tool's process, ended by itself. What
// the clean-up killed has not ended by itself.
func exitOf(e evidence, command bool) Exit {
	if exit := e.final.GetExit(); exit != nil {
		if exit.GetSignal() != "" {
			return Exit{Signal: exit.GetSignal()}
		}
		return Exit{Code: new(int(exit.GetCode()))}
	}
	switch {
	case command && e.complete():
		return Exit{Code: new(0)}
	case !e.exited:
		return Exit{}
	case e.exit.Signaled():
		return Exit{Signal: sandbox.SignalName(e.exit.Signal())}
	}
	return Exit{Code: new(e.exit.ExitStatus())}
}
