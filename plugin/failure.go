package plugin

import pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"

// FailureKind says how the program behind a tool failed.
type FailureKind int

// Kinds of failure, and the status of such a call. The status start_failed is for
// toolhost's own adapters only: from another tool, which did start, the failure is a
// tool_error.
const (
	// StartFailed means that the program could not be started, or did not get
	// ready (start_failed).
	StartFailed FailureKind = iota + 1
	// Crashed means that the program ended before its result (crashed).
	Crashed
	// BrokeProtocol means that the program violated its protocol with the
	// adapter (protocol_error).
	BrokeProtocol
	// Missing and NotExecutable mean that the program was not found, or cannot be
	// executed (start_failed, not retryable).
	Missing
	NotExecutable
)

// Failure is the error that an adapter returns if the program behind the tool failed,
// rather than the tool itself.
type Failure struct {
	Kind FailureKind
	// Err says what happened. Its first line must make sense alone.
	Err error
	// Exit, if not nil, is the program's exit, for the result.
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
