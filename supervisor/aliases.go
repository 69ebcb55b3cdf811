package supervisor

import (
	"context"
	"encoding/json"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/call"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/redact"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// What a supervisor is asked for is data, and has a package of its own, where each
// field is described: [spec].
type (
	// Request is one call. Tool.Path or Command must be set, and not both.
	Request = spec.Request
	// Refusal is why a call would not be begun, with the status and reason of its result.
	Refusal = outcome.Refusal
	// AbortCause, as the cause of a context, is the reason for which the context's end
	// aborts calls.
	AbortCause = outcome.AbortCause
	// Tool names what to run: a plugin binary, and the tool in it.
	Tool = spec.Tool
	// Command is a plain command, run through the command adapter.
	Command = spec.Command
	// CommandTool makes a tool of a command line. NewCommandTool makes one; it may
	// be used for any number of calls at once.
	CommandTool = spec.CommandTool
	// CommandSpec says what a plugin binary would say and do for itself.
	CommandSpec = spec.CommandSpec
	// OutputReader makes content of what a command writes to its standard output.
	OutputReader = spec.OutputReader
	// OutputWarner is an OutputReader that may have something to say of the output.
	OutputWarner = spec.OutputWarner
	// Limits of one call, for its whole process tree. Zero fields mean the
	// supervisor's own, and those of a supervisor DefaultLimits.
	Limits = spec.Limits
	// Keep lets a tool's process live on for later calls of the same request.
	Keep = spec.Keep
	// Placement says by which process, and on which machine, a call is made.
	Placement = spec.Placement
	// PrestartBudget bounds the processes that wait for calls.
	PrestartBudget = spec.PrestartBudget
	// Lock keeps calls that use the same files from running at once.
	Lock = spec.Lock
	// Pool bounds how many calls of a kind run at once.
	Pool = spec.Pool
	// Share is who a call is for, where several share the slots.
	Share = spec.Share
	// Secret is a credential that a call is given.
	Secret = spec.Secret
	// ClientRequest is what a server asks of its client.
	ClientRequest = spec.ClientRequest
	// Question is what a tool asks a human in the middle of a call.
	Question = spec.Question
	// Answer is a human's, or says why nobody answered.
	Answer = spec.Answer
	// Policy says what a call may touch; the zero value grants nothing.
	Policy = sandbox.Policy
)

const (
	// Unlimited turns a limit off whose zero value means a default.
	Unlimited = spec.Unlimited
	// MaxSecretBytes is the longest secret that a call takes: longer ones could not be
	// kept out of its output.
	MaxSecretBytes = redact.MaxBytes
	// MinMemoryBytes is the least memory limit of a call.
	MinMemoryBytes = spec.MinMemoryBytes
	// DefaultKeepIdle is how long a kept process waits for another call.
	DefaultKeepIdle = spec.DefaultKeepIdle
	// MaxPrestart bounds the processes that one request may have wait for its calls.
	MaxPrestart = spec.MaxPrestart
)

// DefaultLimits are those of a call that nobody configured.
func DefaultLimits() Limits { return spec.DefaultLimits() }

// NewCommandTool checks the description and its schema.
func NewCommandTool(of CommandSpec) (*CommandTool, error) { return spec.NewCommandTool(of) }

// ArgumentCheck gives what a call of the described tool does to its arguments
// first: it refuses those that the tool's own schema does not allow.
func ArgumentCheck(d *pluginv1.ToolDescription) func(arguments, meta json.RawMessage) error {
	return prepare.ArgumentCheck(d)
}

// DroppedWarning is the warning about output of a command that is JSON and is kept
// as text: so many lines, 0 for all of it.
func DroppedWarning(lines int64, why error) string { return call.DroppedWarning(lines, why) }

// ReasonOf is why a context that has ended aborts a call: for the reason of its
// AbortCause, timeout at a deadline, else user.
func ReasonOf(ctx context.Context) api.Reason { return outcome.AbortReason(ctx) }
