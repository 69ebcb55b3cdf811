package supervisor

import "github.com/toolhost/toolhost/api"

// Status is a call's one outcome.
//
// Deprecated: use [api.Status].
type Status = api.Status

// The outcomes.
//
// Deprecated: use those of package api.
const (
	StatusOK              = api.StatusOK
	StatusToolError       = api.StatusToolError
	StatusTimeout         = api.StatusTimeout
	StatusCancelled       = api.StatusCancelled
	StatusDenied          = api.StatusDenied
	StatusOOM             = api.StatusOOM
	StatusPidsLimit       = api.StatusPidsLimit
	StatusOutputLimit     = api.StatusOutputLimit
	StatusCPULimit        = api.StatusCPULimit
	StatusCrashed         = api.StatusCrashed
	StatusNoResult        = api.StatusNoResult
	StatusStartFailed     = api.StatusStartFailed
	StatusProtocolError   = api.StatusProtocolError
	StatusPolicyViolation = api.StatusPolicyViolation
	StatusCollateral      = api.StatusCollateral
	StatusUnkillable      = api.StatusUnkillable
	StatusOverloaded      = api.StatusOverloaded
	StatusInvalidArgs     = api.StatusInvalidArgs
	StatusRunning         = api.StatusRunning
)

// Statuses returns all outcomes, sorted.
//
// Deprecated: use [api.Statuses].
func Statuses() []Status { return api.Statuses() }

// AbortReason says who ended a call.
//
// Deprecated: use [api.Reason].
type AbortReason = api.Reason

// Reasons for an abort.
//
// Deprecated: use those of package api.
const (
	AbortUser       = api.ReasonUser
	AbortParent     = api.ReasonParent
	AbortDisconnect = api.ReasonDisconnect
	AbortTimeout    = api.ReasonTimeout
	AbortError      = api.ReasonError
	AbortShutdown   = api.ReasonShutdown
)

// SchemaVersion is that of Result's JSON.
//
// Deprecated: use [api.SchemaVersion].
const SchemaVersion = api.SchemaVersion

// What a result is made of.
//
// Deprecated: use the types of package api.
type (
	// Result says what happened to one call.
	//
	// Deprecated: use [api.Result].
	Result = api.Result
	// Marks are moments of a call.
	//
	// Deprecated: use [api.Marks].
	Marks = api.Marks
	// ToolError is a tool's own account of its failure.
	//
	// Deprecated: use [api.ToolError].
	ToolError = api.ToolError
	// File is one that the tool left in its workspace.
	//
	// Deprecated: use [api.File].
	File = api.File
	// Content is one piece of what a tool has to show.
	//
	// Deprecated: use [api.Content].
	Content = api.Content
	// Output counts and keeps what went through each stream.
	//
	// Deprecated: use [api.Output].
	Output = api.Output
	// StreamOutput is the head and the tail of a byte stream.
	//
	// Deprecated: use [api.StreamOutput].
	StreamOutput = api.StreamOutput
	// ContentOutput counts the bytes of Content.
	//
	// Deprecated: use [api.ContentOutput].
	ContentOutput = api.ContentOutput
	// Timing is where the time went.
	//
	// Deprecated: use [api.Timing].
	Timing = api.Timing
	// Kill is the evidence of the kill ladder.
	//
	// Deprecated: use [api.Kill].
	Kill = api.Kill
	// Exit is how the tool's main process ended.
	//
	// Deprecated: use [api.Exit].
	Exit = api.Exit
	// Usage is what the whole process tree used.
	//
	// Deprecated: use [api.Usage].
	Usage = api.Usage
	// AppliedLimits are the limits that were in force.
	//
	// Deprecated: use [api.AppliedLimits].
	AppliedLimits = api.AppliedLimits
	// Retry is advice on calling again.
	//
	// Deprecated: use [api.Retry].
	Retry = api.Retry
)

// EventKind names what happened.
//
// Deprecated: use [api.EventKind].
type EventKind = api.EventKind

// Event is something that happened to a call.
//
// Deprecated: use [api.Event].
type Event = api.Event

// Kinds of events.
//
// Deprecated: use those of package api.
const (
	EventQueued   = api.EventQueued
	EventStarted  = api.EventStarted
	EventProgress = api.EventProgress
	EventOutput   = api.EventOutput
	EventLog      = api.EventLog
	EventOverran  = api.EventOverran
	EventTimeout  = api.EventTimeout
	EventFinished = api.EventFinished
	EventFailed   = api.EventFailed
)
