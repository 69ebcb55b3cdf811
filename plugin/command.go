package plugin

import (
	"fmt"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// CommandExit is the error that a tool returns for a command that failed. The
// host then reports the command's exit as the call's, instead of an error
// text.
type CommandExit struct {
	// Code is the exit status, 1 to 255. Signal is the name of the signal that
	// ended the command, if any, such as SIGSEGV.
	Code   int
	Signal string
	// Missing or NotExecutable is set if the command could not be started, and
	// Err says why.
	Missing, NotExecutable bool
	Err                    error
}

func (e *CommandExit) Error() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Signal != "":
		return "the command died of " + e.Signal
	}
	return fmt.Sprintf("the command exited with status %d", e.Code)
}

func (e *CommandExit) Unwrap() error { return e.Err }

func (e *CommandExit) result() *pluginv1.Result {
	kind := pluginv1.ToolError_KIND_UNSPECIFIED
	switch {
	case e.Missing:
		kind = pluginv1.ToolError_KIND_COMMAND_NOT_FOUND
	case e.NotExecutable:
		kind = pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE
	default:
		return &pluginv1.Result{Exit: e.wire()}
	}
	return &pluginv1.Result{Error: &pluginv1.ToolError{Kind: kind, Message: bounded(e.Error())}}
}

func (e *CommandExit) wire() *pluginv1.CommandExit {
	return &pluginv1.CommandExit{Code: int32(e.Code), Signal: printable(e.Signal)}
}
