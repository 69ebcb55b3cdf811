package supervisor

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"syscall"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox/signals"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
)

// evidence is all that the outcome of a call is decided by.
type evidence struct {
	cause     cause
	reason    api.Reason
	final     *pluginv1.Result
	startErr  error
	streamErr error
	exited    bool
	exit      syscall.WaitStatus
	// launcherLost: the launcher was ended from outside, and the tool with it.
	launcherLost bool
	exitOurs     bool // the clean-up's, so that nothing is known of the tool's own
	ran          bool
	survivors    int
	// exitOK: the exit status is that of a success, as the tool itself said if it
	// was judged; outputErr: the output is not what such a success has.
	exitOK      bool
	exitJudged  bool
	exitMessage string
	outputErr   error
	overTotal   bool // more output than is allowed in all
	usage       cgroup.Usage
}

// complete: a success was received in full. It counts whatever came after.
func (e evidence) complete() bool {
	if e.final == nil || e.noMemory() || e.brokeProtocol() || e.badOutput() {
		return false
	}
	return e.succeeded()
}

// badOutput: the output is not what a success has. None at all is fine with a
// status other than 0 that the tool calls a success: grep's 1.
func (e evidence) badOutput() bool {
	none := errors.Is(e.outputErr, io.EOF) && e.exitJudged && e.exitOK && e.final.GetExit().GetCode() != 0
	return e.outputErr != nil && !none
}

func (e evidence) succeeded() bool {
	return e.final.GetError() == nil && e.goodExit() && e.final.GetExit().GetSignal() == ""
}

// goodExit reports whether the exit status means success; no status counts as
// 0.
func (e evidence) goodExit() bool {
	if e.exitJudged {
		return e.exitOK
	}
	return e.final.GetExit().GetCode() == 0
}

func (e evidence) brokeProtocol() bool {
	var broken *host.ProtocolError
	return errors.As(e.streamErr, &broken)
}

// noMemory: the host could not take what the tool sent.
func (e evidence) noMemory() bool {
	var full *host.MemoryError
	return errors.As(e.streamErr, &full)
}

// outcome is what a call came to.
type outcome struct {
	status api.Status
	reason api.Reason
}

// classify decides the one outcome of a call. The order is the rule: a
// complete result counts, then what began the ladder, then the kernel's word on
// memory, and only then what the tool seems to have done.
func classify(e evidence) outcome {
	switch {
	case e.survivors > 0:
		return outcome{api.StatusUnkillable, e.reason}
	case e.complete():
		return outcome{api.StatusOK, ""}
	case e.cause == causeOOM && e.usage.OOMEvents+e.usage.OOMKills == 0 && e.usage.AncestorOOMKills > 0:
		return outcome{api.StatusOOM, api.ReasonHostMemory}
	case e.cause != causeNone:
		return outcome{e.cause.status(), e.reason}
	case e.usage.OOMEvents > 0 || e.usage.OOMKills > 0:
		return outcome{api.StatusOOM, api.ReasonMemory}
	case e.usage.AncestorOOMKills > 0:
		return outcome{api.StatusOOM, api.ReasonHostMemory}
	case e.overTotal:
		return outcome{api.StatusOutputLimit, api.ReasonOutputTotal}
	case e.outOfTasks():
		return outcome{api.StatusPidsLimit, api.ReasonPids}
	case e.startErr != nil:
		return startOutcome(e.startErr)
	case e.noMemory():
		return outcome{api.StatusOverloaded, api.ReasonMemory}
	case e.brokeProtocol():
		return outcome{api.StatusProtocolError, api.ReasonProtocol}
	case e.final != nil && e.succeeded():
		return outcome{api.StatusToolError, api.ReasonOutput}
	case e.final != nil:
		return finalOutcome(e.final)
	}
	return deathOutcome(e)
}

// interrupted is what the call would have come to without its result, where
// something had begun to end it.
func (e evidence) interrupted() outcome {
	if e.cause == causeNone {
		return outcome{}
	}
	e.final, e.survivors = nil, 0
	return classify(e)
}

// outOfTasks: the tool could fork no more, and has ended without a result.
func (e evidence) outOfTasks() bool {
	_, refused := errors.AsType[*refusal](e.startErr)
	return e.usage.PidsLimitHits > 0 && e.final == nil && !e.brokeProtocol() && (e.startErr == nil || e.exited && !refused)
}

// began: something of the tool has run. An adapter alone is nothing of it.
func (e evidence) began() bool {
	kind := e.final.GetError().GetKind()
	return e.ran && kind != pluginv1.ToolError_KIND_COMMAND_NOT_FOUND && kind != pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE
}

// left: the tool has closed its connection before a result, by itself, and is
// still there.
func (e evidence) left() bool {
	return e.final == nil && e.startErr == nil && e.cause == causeNone && !e.exited && errors.Is(e.streamErr, host.ErrDisconnected)
}

func startOutcome(err error) outcome {
	var refused *refusal
	if errors.As(err, &refused) {
		return outcome{refused.status, refused.reason}
	}
	var overloaded *admission.OverloadedError
	if errors.As(err, &overloaded) {
		return outcome{api.StatusOverloaded, api.ReasonAdmission}
	}
	return outcome{api.StatusStartFailed, api.ReasonStart}
}

// finalOutcome is that of a result which is not a success.
func finalOutcome(final *pluginv1.Result) outcome {
	switch final.GetExit().GetSignal() {
	case "":
	case "SIGSYS":
		return outcome{api.StatusPolicyViolation, api.ReasonSeccomp}
	default:
		return outcome{api.StatusCrashed, api.ReasonSignal}
	}
	switch final.GetError().GetKind() {
	case pluginv1.ToolError_KIND_INVALID_ARGUMENTS:
		return outcome{api.StatusInvalidArgs, api.ReasonArguments}
	case pluginv1.ToolError_KIND_COMMAND_NOT_FOUND:
		return outcome{api.StatusStartFailed, api.ReasonNotFound}
	case pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE:
		return outcome{api.StatusStartFailed, api.ReasonNotExecutable}
	case pluginv1.ToolError_KIND_PANIC:
		return outcome{api.StatusToolError, api.ReasonPanic}
	}
	if status, ok := behindTool[final.GetError().GetKind()]; ok {
		return outcome{status, api.ReasonServer}
	}
	return outcome{api.StatusToolError, api.ReasonError}
}

// behindTool are the outcomes of what happened to the program behind an adapter.
var behindTool = map[pluginv1.ToolError_Kind]api.Status{
	pluginv1.ToolError_KIND_START_FAILED: api.StatusStartFailed,
	pluginv1.ToolError_KIND_CRASHED:      api.StatusCrashed,
	pluginv1.ToolError_KIND_PROTOCOL:     api.StatusProtocolError,
}

// deathOutcome is that of a tool that is gone, or deaf, without a result.
func deathOutcome(e evidence) outcome {
	switch {
	case !e.exited:
		return outcome{api.StatusProtocolError, api.ReasonConnectionClosed}
	case e.exit.Signaled() && e.exit.Signal() == syscall.SIGSYS:
		return outcome{api.StatusPolicyViolation, api.ReasonSeccomp}
	case e.launcherLost:
		return outcome{api.StatusCrashed, api.ReasonLauncher}
	case e.exit.Signaled():
		return outcome{api.StatusCrashed, api.ReasonSignal}
	case e.exit.ExitStatus() == 0:
		return outcome{api.StatusNoResult, api.ReasonExit}
	}
	return outcome{api.StatusCrashed, api.ReasonExit}
}

// maxToolErrorBytes bounds the message and the stack of a tool's error.
const maxToolErrorBytes = 64 << 10

// toolErrorOf is what the tool itself said, if it failed.
func toolErrorOf(e evidence) *api.ToolError {
	said := wholeToolError(e)
	if said != nil {
		said.Message, said.Stack = cutAt(said.Message, maxToolErrorBytes), cutAt(said.Stack, maxToolErrorBytes)
	}
	return said
}

func wholeToolError(e evidence) *api.ToolError {
	final := e.final
	switch {
	case e.noMemory():
		return &api.ToolError{Kind: "error", Message: e.streamErr.Error()}
	case e.brokeProtocol():
		return &api.ToolError{Kind: "protocol", Message: e.streamErr.Error()}
	case e.left():
		return &api.ToolError{Kind: "protocol", Message: host.ErrDisconnected.Error() + ", and lives on"}
	case final.GetError() != nil:
		return &api.ToolError{Kind: kindOf(final.GetError()), Message: final.GetError().GetMessage(), Stack: final.GetError().GetStack()}
	case final.GetExit().GetSignal() != "":
		return &api.ToolError{Kind: "signal", Message: "the command died of " + final.GetExit().GetSignal()}
	case final != nil && e.succeeded() && e.badOutput():
		return &api.ToolError{Kind: "output", Message: e.outputErr.Error()}
	case final != nil && !e.goodExit():
		return &api.ToolError{Kind: "exit", Message: exitMessage(final.GetExit().GetCode(), e.exitMessage)}
	case final == nil && e.startErr != nil && !errors.Is(e.startErr, context.Canceled) && !errors.Is(e.startErr, errEndedStarting):
		return startError(e)
	}
	return nil
}

// startError is why the tool has not started. That it ended its output says
// nothing of the tool where something else had ended it.
func startError(e evidence) *api.ToolError {
	text := e.startErr.Error()
	if broken, ok := errors.AsType[*host.HandshakeError](e.startErr); ok && broken.Ended {
		if classify(e).status != api.StatusStartFailed {
			return nil
		}
		text = endedStarting(e, text)
	}
	return &api.ToolError{Kind: "error", Message: text}
}

// endedStarting says how a tool has ended that was to have a handshake first.
func endedStarting(e evidence, otherwise string) string {
	switch {
	case !e.exited || e.exitOurs || e.exit.ExitStatus() == 0:
		return otherwise
	case e.exit.Signaled():
		return "it died of " + signals.Name(e.exit.Signal()) + " before its handshake: see what it has said on stderr"
	}
	return otherwise + "; it exited with status " + strconv.Itoa(e.exit.ExitStatus())
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

// exitOf is how the command, or else the tool's process, ended by itself. What
// the clean-up killed has not ended by itself.
func exitOf(e evidence, command bool) api.Exit {
	if exit := e.final.GetExit(); exit != nil {
		if exit.GetSignal() != "" {
			return api.Exit{Signal: exit.GetSignal()}
		}
		return api.Exit{Code: new(int(exit.GetCode()))}
	}
	switch {
	case command && e.complete():
		return api.Exit{Code: new(0)}
	case !e.exited || e.exitOurs || e.launcherLost:
		return api.Exit{}
	case e.exit.Signaled():
		return api.Exit{Signal: signals.Name(e.exit.Signal())}
	}
	return api.Exit{Code: new(e.exit.ExitStatus())}
}
