package outcome

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"syscall"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/plugin/host"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/text"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
)

// Complete says that a success was received in full. It counts whatever came after.
func (e Evidence) Complete() bool {
	if e.Final == nil || e.noMemory() || e.brokeProtocol() || e.badOutput() {
		return false
	}
	return e.succeeded()
}

// badOutput: the output is not what a success has. None at all is fine with a
// status other than 0 that the tool calls a success: grep's 1.
func (e Evidence) badOutput() bool {
	none := errors.Is(e.OutputErr, io.EOF) && e.ExitJudged && e.ExitOK && e.Final.GetExit().GetCode() != 0
	return e.OutputErr != nil && !none
}

func (e Evidence) succeeded() bool {
	return e.Final.GetError() == nil && e.goodExit() && e.Final.GetExit().GetSignal() == ""
}

// goodExit reports whether the exit status means success; no status counts as
// 0.
func (e Evidence) goodExit() bool {
	if e.ExitJudged {
		return e.ExitOK
	}
	return e.Final.GetExit().GetCode() == 0
}

func (e Evidence) brokeProtocol() bool {
	var broken *host.ProtocolError
	return errors.As(e.StreamErr, &broken)
}

// noMemory: the host could not take what the tool sent.
func (e Evidence) noMemory() bool {
	var full *host.MemoryError
	return errors.As(e.StreamErr, &full)
}

// outcome is what a call came to.
type outcome struct {
	status api.Status
	reason api.Reason
}

// classify decides the one outcome of a call. The order is the rule: a
// complete result counts, then what began the ladder, then the kernel's word on
// memory, and only then what the tool seems to have done.
func classify(e Evidence) outcome {
	switch {
	case e.Survivors > 0:
		return outcome{api.StatusUnkillable, e.Reason}
	case e.Complete():
		return outcome{api.StatusOK, ""}
	case e.Cause == CauseOOM && e.Usage.OOMEvents+e.Usage.OOMKills == 0 && e.Usage.AncestorOOMKills > 0:
		return outcome{api.StatusOOM, e.outerMemory()}
	case e.Cause != CauseNone:
		return outcome{e.Cause.Status(), e.Reason}
	case e.Usage.OOMEvents > 0 || e.Usage.OOMKills > 0:
		return outcome{api.StatusOOM, api.ReasonMemory}
	case e.Usage.AncestorOOMKills > 0:
		return outcome{api.StatusOOM, e.outerMemory()}
	case e.OverTotal:
		return outcome{api.StatusOutputLimit, api.ReasonOutputTotal}
	case e.OverNetwork != "":
		return outcome{api.StatusNetworkLimit, api.Reason(e.OverNetwork)}
	case e.outOfTasks():
		return outcome{api.StatusPidsLimit, api.ReasonPids}
	case e.StartErr != nil:
		return startOutcome(e.StartErr)
	case e.noMemory():
		return outcome{api.StatusOverloaded, api.ReasonMemory}
	case e.brokeProtocol():
		return outcome{api.StatusProtocolError, api.ReasonProtocol}
	case e.Final != nil && e.succeeded():
		return outcome{api.StatusToolError, api.ReasonOutput}
	case e.Final != nil:
		return e.finalOutcome()
	}
	return deathOutcome(e)
}

// outerMemory is which memory has run out that is not the call's own.
func (e Evidence) outerMemory() api.Reason {
	if e.Usage.ShareOOMKills > 0 {
		return api.ReasonShareMemory
	}
	return api.ReasonHostMemory
}

// interrupted is what the call would have come to without its result, where
// something had begun to end it.
func (e Evidence) interrupted() outcome {
	if e.Cause == CauseNone {
		return outcome{}
	}
	e.Final, e.Survivors = nil, 0
	return classify(e)
}

// outOfTasks: the tool could fork no more, and has ended without a result.
func (e Evidence) outOfTasks() bool {
	_, refused := errors.AsType[*Refusal](e.StartErr)
	return e.Usage.PidsLimitHits > 0 && e.Final == nil && !e.brokeProtocol() && (e.StartErr == nil || e.Exited && !refused)
}

// began: something of the tool has run. An adapter alone is nothing of it.
func (e Evidence) began() bool { return e.Ran && !e.missing() }

// missing: an adapter of toolhost's own has not found what it was to run, or could not
// execute it. Another tool that says so has run itself.
func (e Evidence) missing() bool {
	kind := e.Final.GetError().GetKind()
	return e.ours && (kind == pluginv1.ToolError_KIND_COMMAND_NOT_FOUND || kind == pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE)
}

// left: the tool has closed its connection before a result, by itself, and is
// still there.
func (e Evidence) left() bool {
	return e.Final == nil && e.StartErr == nil && e.Cause == CauseNone && !e.Exited && errors.Is(e.StreamErr, host.ErrDisconnected)
}

func startOutcome(err error) outcome {
	var refused *Refusal
	if errors.As(err, &refused) {
		return outcome{refused.Status, refused.Reason}
	}
	var overloaded *admission.OverloadedError
	if errors.As(err, &overloaded) {
		if overloaded.Quota {
			return outcome{api.StatusOverloaded, api.ReasonQuota}
		}
		return outcome{api.StatusOverloaded, api.ReasonAdmission}
	}
	return outcome{api.StatusStartFailed, api.ReasonStart}
}

// finalOutcome is that of a result which is not a success. That its program was ended by the
// sandbox, or has not started, is not for any tool to say.
func (e Evidence) finalOutcome() outcome {
	signal, kind := e.Final.GetExit().GetSignal(), e.Final.GetError().GetKind()
	if signal == "SIGSYS" && e.ours {
		return outcome{api.StatusPolicyViolation, api.ReasonSeccomp}
	}
	if status, reason, ok := Behind(kind); ok && (e.ours || status != api.StatusStartFailed) {
		return outcome{status, reason}
	}
	switch {
	case signal != "":
		return outcome{api.StatusCrashed, api.ReasonSignal}
	case kind == pluginv1.ToolError_KIND_INVALID_ARGUMENTS:
		return outcome{api.StatusInvalidArgs, api.ReasonArguments}
	case kind == pluginv1.ToolError_KIND_PANIC:
		return outcome{api.StatusToolError, api.ReasonPanic}
	}
	return outcome{api.StatusToolError, api.ReasonError}
}

// Behind is the outcome of what happened to the program behind an adapter; ok is
// false for an error of another kind.
func Behind(kind pluginv1.ToolError_Kind) (status api.Status, reason api.Reason, ok bool) {
	switch kind {
	case pluginv1.ToolError_KIND_COMMAND_NOT_FOUND:
		return api.StatusStartFailed, api.ReasonNotFound, true
	case pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE:
		return api.StatusStartFailed, api.ReasonNotExecutable, true
	case pluginv1.ToolError_KIND_START_FAILED:
		return api.StatusStartFailed, api.ReasonServer, true
	case pluginv1.ToolError_KIND_CRASHED:
		return api.StatusCrashed, api.ReasonServer, true
	case pluginv1.ToolError_KIND_PROTOCOL:
		return api.StatusProtocolError, api.ReasonServer, true
	}
	return "", "", false
}

// deathOutcome is that of a tool that is gone, or deaf, without a result.
func deathOutcome(e Evidence) outcome {
	switch {
	case !e.Exited:
		return outcome{api.StatusProtocolError, api.ReasonConnectionClosed}
	case e.Exit.Signaled() && e.Exit.Signal() == syscall.SIGSYS:
		return outcome{api.StatusPolicyViolation, api.ReasonSeccomp}
	case e.LauncherLost:
		return outcome{api.StatusCrashed, api.ReasonLauncher}
	case e.Exit.Signaled():
		return outcome{api.StatusCrashed, api.ReasonSignal}
	case e.Exit.ExitStatus() == 0:
		return outcome{api.StatusNoResult, api.ReasonExit}
	}
	return outcome{api.StatusCrashed, api.ReasonExit}
}

// maxToolErrorBytes bounds the message and the stack of a tool's error.
const maxToolErrorBytes = 64 << 10

// toolErrorOf is what the tool itself said, if it failed.
func toolErrorOf(e Evidence) *api.ToolError {
	said := wholeToolError(e)
	if said != nil {
		said.Message, said.Stack = text.Begin(said.Message, maxToolErrorBytes), text.Begin(said.Stack, maxToolErrorBytes)
	}
	return said
}

func wholeToolError(e Evidence) *api.ToolError {
	final := e.Final
	switch {
	case e.noMemory():
		return &api.ToolError{Kind: "error", Message: e.StreamErr.Error()}
	case e.brokeProtocol():
		return &api.ToolError{Kind: "protocol", Message: e.StreamErr.Error()}
	case e.left():
		return &api.ToolError{Kind: "protocol", Message: host.ErrDisconnected.Error() + ", and lives on"}
	case final.GetError() != nil:
		return &api.ToolError{Kind: kindOf(final.GetError()), Message: final.GetError().GetMessage(), Stack: final.GetError().GetStack(), RPC: final.GetError().GetRpc()}
	case final.GetExit().GetSignal() != "":
		return &api.ToolError{Kind: "signal", Message: "the command died of " + signalSaid(final.GetExit())}
	case final != nil && e.succeeded() && e.badOutput():
		return &api.ToolError{Kind: "output", Message: e.OutputErr.Error()}
	case final != nil && !e.goodExit():
		return &api.ToolError{Kind: "exit", Message: exitMessage(final.GetExit().GetCode(), e.ExitMessage)}
	case final == nil && e.StartErr != nil && !errors.Is(e.StartErr, context.Canceled) && !errors.Is(e.StartErr, ErrEndedStarting):
		return startError(e)
	}
	return nil
}

// startError is why the tool has not started. That it ended its output says
// nothing of the tool where something else had ended it.
func startError(e Evidence) *api.ToolError {
	text := e.StartErr.Error()
	if host.Ended(e.StartErr) {
		if classify(e).status != api.StatusStartFailed {
			return nil
		}
		text = endedStarting(e, text)
	}
	return &api.ToolError{Kind: startErrorKind(e.StartErr), Message: text}
}

// startErrorKind is that of a program which cannot be executed, where the host has found that, too.
func startErrorKind(err error) string {
	refused, _ := errors.AsType[*Refusal](err)
	switch {
	case refused == nil:
	case refused.Reason == api.ReasonNotFound:
		return toolErrorKinds[pluginv1.ToolError_KIND_COMMAND_NOT_FOUND]
	case refused.Reason == api.ReasonNotExecutable:
		return toolErrorKinds[pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE]
	}
	return toolErrorKinds[pluginv1.ToolError_KIND_ERROR]
}

// endedStarting says how a tool has ended that was to have a handshake first.
func endedStarting(e Evidence, otherwise string) string {
	switch {
	case !e.Exited || e.ExitOurs || e.Exit.ExitStatus() == 0:
		return otherwise
	case e.Exit.Signaled():
		return "it died of " + signals.Name(e.Exit.Signal()) + " before its handshake: see what it has said on stderr"
	}
	return otherwise + "; it exited with status " + strconv.Itoa(e.Exit.ExitStatus())
}

func exitMessage(code int32, meaning string) string {
	text := "the command exited with status " + strconv.Itoa(int(code))
	if meaning != "" {
		text += ": " + meaning
	}
	return text
}

var toolErrorKinds = map[pluginv1.ToolError_Kind]string{
	pluginv1.ToolError_KIND_UNSPECIFIED:            "error",
	pluginv1.ToolError_KIND_ERROR:                  "error",
	pluginv1.ToolError_KIND_PANIC:                  "panic",
	pluginv1.ToolError_KIND_CANCELLED:              "cancelled",
	pluginv1.ToolError_KIND_INVALID_ARGUMENTS:      "invalid_arguments",
	pluginv1.ToolError_KIND_COMMAND_NOT_FOUND:      "command_not_found",
	pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE: "command_not_executable",
	pluginv1.ToolError_KIND_START_FAILED:           "start_failed",
	pluginv1.ToolError_KIND_CRASHED:                "crashed",
	pluginv1.ToolError_KIND_PROTOCOL:               "protocol",
}

// kindOf takes a kind that this host doesn't know for an error like any other.
func kindOf(e *pluginv1.ToolError) string {
	return cmp.Or(toolErrorKinds[e.GetKind()], "error")
}

// maxSignalBytes bounds what a tool calls a signal: SIGRTMAX-14 is the longest of their names.
const maxSignalBytes = 32

// signalSaid is what a tool calls the signal that has ended its program.
func signalSaid(exit *pluginv1.CommandExit) string {
	return cmp.Or(text.Begin(text.FirstLine(exit.GetSignal()), maxSignalBytes), "an unknown signal")
}

// exitOf is how the command, or else the tool's process, ended by itself. What
// the clean-up killed has not ended by itself.
func exitOf(e Evidence, command bool) api.Exit {
	if exit := e.Final.GetExit(); exit != nil {
		if exit.GetSignal() != "" {
			return api.Exit{Signal: signalSaid(exit)}
		}
		return api.Exit{Code: new(int(exit.GetCode()))}
	}
	switch {
	case command && e.Complete():
		return api.Exit{Code: new(0)}
	case !e.Exited || e.ExitOurs || e.LauncherLost:
		return api.Exit{}
	case e.Exit.Signaled():
		return api.Exit{Signal: signals.Name(e.Exit.Signal())}
	}
	return api.Exit{Code: new(e.Exit.ExitStatus())}
}
