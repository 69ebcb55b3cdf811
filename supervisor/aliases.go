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

// Requests are plain data. Package [spec] defines their types and documents each
// field.
type (
	// Request is one call. Tool.Path or Command must be set, and not both.
	Request = spec.Request
	// Refusal is the error of a call that is not started, with its result's status and reason.
	Refusal = outcome.Refusal
	// AbortCause, as the cause of a context (see context.WithCancelCause), is the reason of
	// the calls that the context's end aborts.
	AbortCause = outcome.AbortCause
	// Tool names a plugin binary, and the tool in it.
	Tool = spec.Tool
	// Command is a plain command, run through the command adapter.
	Command = spec.Command
	// CommandTool is a tool whose calls run a command. Make one with NewCommandTool. It
	// may be used by any number of calls at once.
	CommandTool = spec.CommandTool
	// CommandSpec describes a CommandTool.
	CommandSpec = spec.CommandSpec
	// OutputReader turns the standard output of a command into content.
	OutputReader = spec.OutputReader
	// OutputWarner is an OutputReader that may warn about valid output.
	OutputWarner = spec.OutputWarner
	// Limits of one call, for its whole process tree. Zero fields mean the
	// supervisor's own, and those of a supervisor DefaultLimits.
	Limits = spec.Limits
	// Keep keeps a tool's process for later calls of the same request.
	Keep = spec.Keep
	// Placement says which process, and which machine, runs a call.
	Placement = spec.Placement
	// PrestartBudget bounds the processes that wait for calls.
	PrestartBudget = spec.PrestartBudget
	// Lock keeps calls that use the same files from running at once.
	Lock = spec.Lock
	// Pool bounds how many calls of a kind run at once.
	Pool = spec.Pool
	// Share identifies whom a call is for, if several parties share the slots.
	Share = spec.Share
	// Secret is a credential for a call.
	Secret = spec.Secret
	// ClientRequest is a request of an MCP server to its client.
	ClientRequest = spec.ClientRequest
	// Question is a tool's question to a human during a call.
	Question = spec.Question
	// Answer answers a Question, or says why nobody did.
	Answer = spec.Answer
	// Policy says what a call may touch; the zero value grants nothing.
	Policy = sandbox.Policy
)

const (
	// Unlimited turns off a limit whose zero value means a default.
	Unlimited = spec.Unlimited
	// MaxSecretBytes is the greatest length of a secret: longer ones could not be kept
	// out of a call's output.
	MaxSecretBytes = redact.MaxBytes
	// MinMemoryBytes is the least memory limit of a call.
	MinMemoryBytes = spec.MinMemoryBytes
	// DefaultKeepIdle is how long a kept process waits for another call.
	DefaultKeepIdle = spec.DefaultKeepIdle
	// MaxPrestart is the greatest value of Placement.Prestart.
	MaxPrestart = spec.MaxPrestart
)

// DefaultLimits returns the limits of a call for which none are configured.
func DefaultLimits() Limits { return spec.DefaultLimits() }

// NewCommandTool returns a tool, or an error if its description or schema is invalid.
func NewCommandTool(of CommandSpec) (*CommandTool, error) { return spec.NewCommandTool(of) }

// ArgumentCheck returns the check with which a call of the described tool begins: it
// fails for arguments that do not match the tool's schema.
func ArgumentCheck(d *pluginv1.ToolDescription) func(arguments, meta json.RawMessage) error {
	return prepare.ArgumentCheck(d)
}

// CommandCheck is ArgumentCheck for a tool that is a command, which may demand more of
// its arguments than its schema says.
func CommandCheck(tool *CommandTool) func(arguments, meta json.RawMessage) error {
	return prepare.CommandCheck(tool)
}

// DroppedWarning returns the warning for JSON output of a command that was kept as
// text: lines of it, or all if lines is 0.
func DroppedWarning(lines int64, why error) string { return call.DroppedWarning(lines, why) }

// ReasonOf returns the reason for which an ended context aborts a call: its
// AbortCause if it has one, timeout if its deadline passed, else user.
func ReasonOf(ctx context.Context) api.Reason { return outcome.AbortReason(ctx) }
