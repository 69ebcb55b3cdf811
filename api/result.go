package api

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// SchemaVersion is the version of Result's JSON. Fields may be added under the
// same version; they are never renamed.
const SchemaVersion = 1

// Values of Result.Instance.
const (
	InstanceFresh      = "fresh"
	InstancePrestarted = "prestarted"
	InstanceReused     = "reused"
)

// Result says what happened to one call. Its JSON is the same from the
// library, the command line and every other surface; docs/result.schema.json
// is its schema. Durations are in the unit that their name ends with.
type Result struct {
	SchemaVersion int    `json:"schemaVersion"`
	CallID        string `json:"callId"`
	TurnID        string `json:"turnId"`
	Tool          string `json:"tool"`
	// SHA256 is the hash of the executable; empty for a command of the runtime
	// for which no hash was requested.
	SHA256 string `json:"sha256"`
	// Instance says whether the process was started for the call (InstanceFresh),
	// before the call and for it alone (InstancePrestarted), or has served other
	// calls (InstanceReused). Usage always begins with the call.
	Instance string `json:"instance"`
	// Status is the outcome, Code the gRPC status code for it, and Reason refines
	// Status (deadline, idle, user, ...).
	Status  Status `json:"status"`
	Code    string `json:"code"`
	Reason  Reason `json:"reason"`
	Decider string `json:"decider"`
	// Details are set for Code DEADLINE_EXCEEDED.
	Details *DeadlineDetails `json:"details,omitempty"`
	// ToolError is the failure that the tool reported, even if the outcome is
	// something else.
	ToolError *ToolError `json:"toolError"`
	Warnings  []string   `json:"warnings"`
	Files     []File     `json:"files"`
	// FilesIncomplete is set if Files does not list all of the workspace's files, or
	// not all that were requested could be copied out. Warnings say why.
	FilesIncomplete bool `json:"filesIncomplete"`
	// Unrecorded is set if the journal could not be written, so that this result is
	// not in it. Warnings say why.
	Unrecorded bool `json:"unrecorded,omitempty"`
	// RemainingMs is the rest of the turn's time budget; null outside of a turn.
	RemainingMs *int64 `json:"remainingMs"`
	// Overran is set if the call passed its soft budget; a deadline, an abort and
	// limits do not set it. Partial is set if Content and Output are what came
	// before the end, not a complete result.
	Overran bool      `json:"overran"`
	Partial bool      `json:"partial"`
	Content []Content `json:"content"`
	// Structured is the tool's typed result, or null.
	Structured json.RawMessage `json:"structured"`
	ServerResult
	Output  Output        `json:"output"`
	Timing  Timing        `json:"timing"`
	Kill    Kill          `json:"kill"`
	Exit    Exit          `json:"exit"`
	Usage   Usage         `json:"usage"`
	Limits  AppliedLimits `json:"limits"`
	Sandbox Receipt       `json:"sandbox"`
	Remote
	Retry Retry `json:"retry"`
	// Message is one short paragraph for the model. It is empty for a success, unless
	// the kill ladder (see Kill.Cause) began before the result came.
	Message string `json:"message"`
	// Marks are the moments that Timing is computed from. They are not in the JSON.
	Marks Marks `json:"-"`
}

// Remote describes a call's relations to other machines.
type Remote struct {
	// Network is the use of the network; null for a call that never ran.
	Network *Network `json:"network,omitempty"`
	// Where is set for a call that was placed on a worker of a fleet.
	Where *Where `json:"where,omitempty"`
}

// Where describes the placement of a call on a worker of a fleet.
type Where struct {
	Worker string `json:"worker"`
	// Attempt counts the workers that the call was offered to, this one included.
	Attempt int `json:"attempt"`
	// PlaceMs is the time until the worker was told to start the call.
	PlaceMs int64 `json:"placeMs"`
	// StillRunning, of a lost call, is "no" if certainly none of its processes runs any
	// more, else "unknown".
	StillRunning string `json:"stillRunning,omitempty"`
}

// DeadlineDetails says which timeout expired, with the field names of gRPC's error
// details.
type DeadlineDetails struct {
	ProfileName string `json:"profile_name"`
	// ConfiguredTimeoutMs is the timeout in force; 0 is infinite.
	ConfiguredTimeoutMs int64 `json:"configured_timeout_ms"`
	// ElapsedMs is Timing.ElapsedMs.
	ElapsedMs int64 `json:"elapsed_ms"`
}

// ToolError is a failure as the tool reported it.
type ToolError struct {
	// Kind is error, panic, cancelled, invalid_arguments, command_not_found,
	// command_not_executable, exit, signal, output (a command's output is not
	// what its tool declares), protocol, or, for the program behind an adapter,
	// start_failed or crashed.
	Kind string `json:"kind"`
	// Message and Stack have at most 64 KiB each.
	Message string `json:"message"`
	// Stack is the stack trace of a panic.
	Stack string `json:"stack,omitempty"`
	// RPC is the error response of a wrapped server, unchanged: an object with code,
	// message and, if present, data.
	RPC json.RawMessage `json:"rpc,omitempty"`
}

// File is a file that the tool left in its workspace.
type File struct {
	// Path is relative to the workspace, with other than printable characters as %XX.
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// Skipped says why the file cannot be copied out: a link, too large, ...
	Skipped string `json:"skipped,omitempty"`
}

// Output is the recorded output of each stream.
type Output struct {
	Stdout StreamOutput `json:"stdout"`
	Stderr StreamOutput `json:"stderr"`
	// Undelivered is set if output is lost because a reader of the command's
	// output was too slow or failed.
	Undelivered bool          `json:"undelivered"`
	Content     ContentOutput `json:"content"`
}

// StreamOutput is the head and the tail of a byte stream, as valid UTF-8. Head
// has all of it if nothing was dropped.
type StreamOutput struct {
	Head         string `json:"head"`
	Tail         string `json:"tail"`
	SeenBytes    int64  `json:"seenBytes"`
	KeptBytes    int64  `json:"keptBytes"`
	DroppedBytes int64  `json:"droppedBytes"`
	SpillPath    string `json:"spillPath"`
}

// ContentOutput counts the bytes of Content.
type ContentOutput struct {
	SeenBytes    int64 `json:"seenBytes"`
	KeptBytes    int64 `json:"keptBytes"`
	DroppedBytes int64 `json:"droppedBytes"`
}

// Timing says how long each part of the call took, and where its timeout comes
// from. ElapsedMs counts from admission, so it does not include QueueMs.
type Timing struct {
	QueueMs     int64 `json:"queueMs"`
	StartMs     int64 `json:"startMs"`
	RunMs       int64 `json:"runMs"`
	GraceMs     int64 `json:"graceMs"`
	DrainMs     int64 `json:"drainMs"`
	HumanWaitMs int64 `json:"humanWaitMs"`
	ElapsedMs   int64 `json:"elapsedMs"`

	Profile string `json:"profile"`
	// RequestedTimeoutMs is null if no timeout was requested; TimeoutMs is null if
	// infinite.
	RequestedTimeoutMs *int64 `json:"requestedTimeoutMs"`
	TimeoutMs          *int64 `json:"timeoutMs"`
	Source             string `json:"source"`
	SourceDetail       string `json:"sourceDetail"`
	Clamped            bool   `json:"clamped"`
	SoftBudgetMs       int64  `json:"softBudgetMs"`
	GraceLimitMs       int64  `json:"graceLimitMs"`
	// SilenceLimitMs, of a call that ended for its silence, is the silence limit in
	// force.
	SilenceLimitMs int64 `json:"silenceLimitMs,omitempty"`
	// SettingsWarnings are those of Result.Warnings about timeouts that come from
	// settings or from the tool, not from the call itself. They are not shown to
	// models.
	SettingsWarnings []string `json:"settingsWarnings,omitempty"`
}

// Kill records the kill ladder. If the call ended by itself, Stage is "none" and
// its remaining processes were cleaned up.
type Kill struct {
	// Stage is "none", "term" (SIGTERM was enough) or "kill".
	Stage string `json:"stage"`
	// Cause says why the ladder began: deadline, idle, abort, oom, ...
	Cause   string   `json:"cause"`
	Signals []string `json:"signals"`
	// Reaped counts the tool's processes that ended, Survivors those that could not
	// be killed.
	Reaped    int `json:"reaped"`
	Survivors int `json:"survivors"`
	// TermLatencyUs is the time from the cause (such as the deadline) to SIGTERM;
	// LatencyUs from SIGKILL until the last process was gone.
	TermLatencyUs int64 `json:"termLatencyUs"`
	LatencyUs     int64 `json:"latencyUs"`
}

// Exit says how the tool's main process, or the command, ended by itself. Code
// is nil and Signal empty if it was still running.
type Exit struct {
	Code   *int   `json:"code"`
	Signal string `json:"signal"`
}

// Usage is the resource usage of the whole process tree, including the launcher
// (one task) and the adapter of a command (another).
type Usage struct {
	CPUUserMs       int64 `json:"cpuUserMs"`
	CPUSystemMs     int64 `json:"cpuSystemMs"`
	MemoryPeakBytes int64 `json:"memoryPeakBytes"`
	PidsPeak        int64 `json:"pidsPeak"`
	IOReadBytes     int64 `json:"ioReadBytes"`
	IOWriteBytes    int64 `json:"ioWriteBytes"`
	// OOMEvents counts how often the call's own memory limit was exhausted;
	// OOMKills is 0 if the whole cgroup was killed before the kernel chose a
	// process. OOMKills and PidsLimitHits count events of the call's own limits,
	// the ancestor fields events of the limits above it (host totals).
	OOMEvents             int64 `json:"oomEvents"`
	OOMKills              int64 `json:"oomKills"`
	PidsLimitHits         int64 `json:"pidsLimitHits"`
	AncestorOOMKills      int64 `json:"ancestorOomKills"`
	AncestorPidsLimitHits int64 `json:"ancestorPidsLimitHits"`
}

// AppliedLimits are the limits that were in force; 0 means none.
type AppliedLimits struct {
	MemoryBytes      int64 `json:"memoryBytes"`
	Pids             int64 `json:"pids"`
	CPUPercent       int64 `json:"cpuPercent"`
	CPUWeight        int64 `json:"cpuWeight"`
	IOWeight         int64 `json:"ioWeight"`
	CPUTimeMs        int64 `json:"cpuTimeMs"`
	OutputBytes      int64 `json:"outputBytes"`
	OutputTotalBytes int64 `json:"outputTotalBytes"`
	// OpenFiles is per process. It and the storage limits below apply only in a
	// sandbox.
	OpenFiles       int64 `json:"openFiles"`
	WorkspaceBytes  int64 `json:"workspaceBytes"`
	WorkspaceInodes int64 `json:"workspaceInodes"`
	TmpBytes        int64 `json:"tmpBytes"`
	ShmBytes        int64 `json:"shmBytes"`
	// Network is set for a call with network grants.
	Network *NetworkLimits `json:"network,omitempty"`
}

// Retry is advice on calling again.
type Retry struct {
	// Retryable is set if the tool never started, or is declared read-only or
	// idempotent, and arguments, policy or a human do not rule a retry out.
	Retryable bool `json:"retryable"`
	// AfterMs is how long an identical call is sure to fail; 0 if unknown.
	AfterMs int64 `json:"afterMs,omitempty"`
	// SideEffects is "none" or "possible".
	SideEffects string `json:"sideEffects"`
	// SuggestedTimeoutMs is set if more time would have helped.
	SuggestedTimeoutMs *int64 `json:"suggestedTimeoutMs"`
	Hint               string `json:"hint"`
	// NotGranted are paths in a failed call that exist on the host but were not
	// granted to the call.
	NotGranted []string `json:"notGranted,omitempty"`
}

// OutputBytes returns the approximate size in bytes of the tool's output in the result.
func (r *Result) OutputBytes() int {
	out := r.Output
	n := len(r.Structured) + len(r.Meta) + len(out.Stdout.Head) + len(out.Stdout.Tail) + len(out.Stderr.Head) + len(out.Stderr.Tail)
	for _, c := range r.Content {
		n += c.Bytes()
	}
	return n
}

// OK reports whether the call succeeded: Status is StatusOK.
func (r *Result) OK() bool { return r.Status == StatusOK }

// Text returns the text content, joined. If the call has neither content nor a
// structured result, as a plain command, Text returns its stdout, with a note where
// bytes were dropped.
func (r *Result) Text() string {
	return r.textBegin(math.MaxInt)
}

// textBegin returns at least the first enough bytes of Text, if it has so many.
func (r *Result) textBegin(enough int) string {
	if len(r.Content) == 0 && (len(r.Structured) == 0 || string(r.Structured) == "null") {
		return r.Output.Stdout.begin(enough)
	}
	var text strings.Builder
	for _, c := range r.Content {
		if text.Len() >= enough {
			break
		}
		if c.Block && text.Len() > 0 && !strings.HasSuffix(text.String(), "\n") {
			text.WriteByte('\n')
		}
		if len(c.Text) > 0 {
			text.WriteString(c.Text[:min(len(c.Text), enough)])
		}
	}
	return text.String()
}

// begin returns what is kept of a stream, or at least the first enough bytes.
func (s StreamOutput) begin(enough int) string {
	if s.DroppedBytes == 0 || len(s.Head) >= enough {
		return s.Head[:min(len(s.Head), enough)]
	}
	head := s.Head
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return head + fmt.Sprintf("[... %d bytes dropped ...]\n", s.DroppedBytes) + s.Tail
}

// Display returns the result for people, cut at 2000 characters: Text if the call
// succeeded, else Message.
func (r *Result) Display() string {
	if r.OK() {
		return Cut(r.textBegin((maxDisplayRunes+1)*utf8.UTFMax), maxDisplayRunes)
	}
	return Cut(r.Message, maxDisplayRunes)
}

const maxDisplayRunes = 2000

// Cut returns s, or its first most characters and an ellipsis if it has more.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n == most {
			return string([]rune(s[:i])) + "…"
		}
		n++
	}
	return s
}
