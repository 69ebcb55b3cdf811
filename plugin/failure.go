package plugin

import pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"

// FailureKind says how the program behind a tool failed.
type FailureKind int

// Kinds of failure, and the status that a host gives such a call. A call is start_failed
// only by the word of toolhost's own adapters: that of another tool, which has run, is a
// tool_error.
const (
	// StartFailed: it could not be started, or did not get ready
	// (start_failed).
	StartFailed FailureKind = iota + 1
	// Crashed: it ended before its result (crashed).
	Crashed
	// BrokeProtocol: it did not keep to the protocol that it speaks with the
	// adapter (protocol_error).
	BrokeProtocol
	// Missing and NotExecutable: the program was not found, or cannot be executed
	// (start_failed, and no use in trying again).
	Missing
	NotExecutable
)

// Failure is what an adapter returns as its error when it was not the tool that
// refused, but the program behind it that failed.
type Failure struct {
	Kind FailureKind
	// Err says what happened, its first line by itself.
	Err error
	// Exit, if not nil, is how the program has ended: the result's exit.
	Exit *CommandExit
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

func (f *Failure) kind() pluginv1.ToolError_Kind {
	switch f.Kind {
	case StartFailed:
		return pluginv1.ToolError_KIND_START_FAILED
	case Crashed:
		return pluginv1.ToolError_KIND_CRASHED
	case BrokeProtocol:
		return pluginv1.ToolError_KIND_PROTOCOL
	case Missing:
		return pluginv1.ToolError_KIND_COMMAND_NOT_FOUND
	case NotExecutable:
		return pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE
	}
	return pluginv1.ToolError_KIND_ERROR
}
