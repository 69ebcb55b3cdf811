package api

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// SchemaVersion is that of Result's JSON. Fields may be added under the same
// version; none is ever renamed.
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
	// SHA256 is that of the executable; empty for a command of the runtime
	// that nobody asked to check.
	SHA256 string `json:"sha256"`
	// Instance says whether the process was started for the call (InstanceFresh), or
	// before it and for one call alone (InstancePrestarted), or has served others
	// (InstanceReused). Usage begins with the call in each.
	Instance string `json:"instance"`
	// Status is the one outcome, Code the gRPC view of it, Reason what it was
	// within the status (deadline, idle, user, ...).
	Status  Status `json:"status"`
	Code    string `json:"code"`
	Reason  Reason `json:"reason"`
	Decider string `json:"decider"`
	// Details are those of Code DEADLINE_EXCEEDED.
	Details *DeadlineDetails `json:"details,omitempty"`
	// ToolError is what the tool itself reported, also where something else
	// was the outcome.
	ToolError *ToolError `json:"toolError"`
	Warnings  []string   `json:"warnings"`
	Files     []File     `json:"files"`
	// FilesIncomplete: not all of the workspace's files are in Files, or not all
	// could be taken out where that was asked for. Warnings say why.
	FilesIncomplete bool `json:"filesIncomplete"`
	// Unrecorded: the journal could not be written, and does not have this result
	// when it is handed over. Warnings say why.
	Unrecorded bool `json:"unrecorded,omitempty"`
	// RemainingMs is what is left of the turn's budget; null outside a turn.
	RemainingMs *int64 `json:"remainingMs"`
	// Overran: the soft budget was passed; a deadline, an abort and limits do not
	// set it. Partial: Content and Output are
	// what came before the end, not a complete result.
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
	// Message is one short paragraph for the model, empty for a success unless
	// something (Kill.Cause) had begun to end the call before its result came.
	Message string `json:"message"`
	// Marks are the moments that Timing is made of. They are on no wire.
	Marks Marks `json:"-"`
}

// Remote is what a call had to do with other machines.
type Remote struct {
	// Network is what was reached and refused; null for a call that never ran.
	Network *Network `json:"network,omitempty"`
	// Where is set for a call that was given to a worker of a fleet.
	Where *Where `json:"where,omitempty"`
}

// Where is the worker of a fleet that a call was given to.
type Where struct {
	Worker string `json:"worker"`
	// Attempt counts the workers that the call was offered to, this one included.
	Attempt int `json:"attempt"`
	// PlaceMs is the time until the worker was told to start it.
	PlaceMs int64 `json:"placeMs"`
	// StillRunning, of a lost call, is "no" where it is certain that nothing of it runs
	// any more, else "unknown".
	StillRunning string `json:"stillRunning,omitempty"`
}

// DeadlineDetails say which timeout was passed, under the names that gRPC's error
// details have for it.
type DeadlineDetails struct {
	ProfileName string `json:"profile_name"`
	// ConfiguredTimeoutMs is the one in force; 0 is infinite.
	ConfiguredTimeoutMs int64 `json:"configured_timeout_ms"`
	// ElapsedMs is Timing's.
	ElapsedMs int64 `json:"elapsed_ms"`
}

// ToolError is a tool's own account of its failure.
type ToolError struct {
	// Kind is error, panic, cancelled, invalid_arguments, command_not_found,
	// command_not_executable, exit, signal, output (a command's output is not
	// what its tool promises), protocol, or of the program behind an adapter
	// start_failed or crashed.
	Kind string `json:"kind"`
	// Message and Stack have at most 64 KiB each.
	Message string `json:"message"`
	// Stack is a panic's.
	Stack string `json:"stack,omitempty"`
	// RPC is the error that a wrapped server has answered with, as it was: an object
	// with code, message and, where there are, data.
	RPC json.RawMessage `json:"rpc,omitempty"`
}

// File is one that the tool left in its workspace.
type File struct {
	// Path is relative to the workspace, made printable.
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// Skipped says why it cannot be taken out: a link, too large, ...
	Skipped string `json:"skipped,omitempty"`
}

// Output counts and keeps what went through each stream.
type Output struct {
	Stdout StreamOutput `json:"stdout"`
	Stderr StreamOutput `json:"stderr"`
	// Undelivered: a reader of the command's output was too slow, or could not
	// take it, and what it had not taken is lost.
	Undelivered bool          `json:"undelivered"`
	Content     ContentOutput `json:"content"`
}

// StreamOutput is the head and the tail of a byte stream, valid UTF-8. Head is
// all of it if nothing was dropped.
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

// Timing is where the time went, and how the timeout came about. ElapsedMs
// runs from admission; queueing comes before it.
type Timing struct {
	QueueMs     int64 `json:"queueMs"`
	StartMs     int64 `json:"startMs"`
	RunMs       int64 `json:"runMs"`
	GraceMs     int64 `json:"graceMs"`
	DrainMs     int64 `json:"drainMs"`
	HumanWaitMs int64 `json:"humanWaitMs"`
	ElapsedMs   int64 `json:"elapsedMs"`

	Profile string `json:"profile"`
	// RequestedTimeoutMs is null if nobody asked, TimeoutMs null if infinite.
	RequestedTimeoutMs *int64 `json:"requestedTimeoutMs"`
	TimeoutMs          *int64 `json:"timeoutMs"`
	Source             string `json:"source"`
	SourceDetail       string `json:"sourceDetail"`
	Clamped            bool   `json:"clamped"`
	SoftBudgetMs       int64  `json:"softBudgetMs"`
	GraceLimitMs       int64  `json:"graceLimitMs"`
	// SilenceLimitMs, of a call that ended for its silence, is how long that
	// might have lasted.
	SilenceLimitMs int64 `json:"silenceLimitMs,omitempty"`
	// SettingsWarnings are those of the result's Warnings that are about time and
	// came of settings, or of the tool, and not of a timeout that the call itself
	// asked for: they are not shown to models.
	SettingsWarnings []string `json:"settingsWarnings,omitempty"`
}

// Kill is the evidence of the kill ladder. For a call that ended by itself the
// stage is "none", and the rest of its processes was cleaned up.
type Kill struct {
	// Stage is "none", "term" (SIGTERM was enough) or "kill".
	Stage string `json:"stage"`
	// Cause is what began the ladder: deadline, idle, abort, oom, ...
	Cause   string   `json:"cause"`
	Signals []string `json:"signals"`
	// Reaped processes of the tool are gone, Survivors could not be killed.
	Reaped    int `json:"reaped"`
	Survivors int `json:"survivors"`
	// TermLatencyUs is from the ladder's cause (the deadline, say) to SIGTERM;
	// LatencyUs from SIGKILL until the last process was gone.
	TermLatencyUs int64 `json:"termLatencyUs"`
	LatencyUs     int64 `json:"latencyUs"`
}

// Exit is how the tool's main process, or the command, ended by itself. Both
// are empty if it was still running.
type Exit struct {
	Code   *int   `json:"code"`
	Signal string `json:"signal"`
}

// Usage is what the whole process tree used, the launcher (one task) and the
// adapter of a command (another) included.
type Usage struct {
	CPUUserMs       int64 `json:"cpuUserMs"`
	CPUSystemMs     int64 `json:"cpuSystemMs"`
	MemoryPeakBytes int64 `json:"memoryPeakBytes"`
	PidsPeak        int64 `json:"pidsPeak"`
	IOReadBytes     int64 `json:"ioReadBytes"`
	IOWriteBytes    int64 `json:"ioWriteBytes"`
	// OOMEvents counts how often the call's own memory limit could not be kept;
	// OOMKills is 0 where the whole group was killed before the kernel chose.
	// OOMKills and PidsLimitHits are those of the call's own limits; the
	// ancestor counts are those of limits above it (host totals).
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
	// OpenFiles is for each process. It and what follows, what a call may
	// store, are the sandbox's.
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
	// Retryable: the tool never started, or is declared read-only or
	// idempotent, and neither arguments, policy nor a human stand against it.
	Retryable bool `json:"retryable"`
	// AfterMs is how long the same call is bound to fail, where that is known.
	AfterMs int64 `json:"afterMs,omitempty"`
	// SideEffects is "none" or "possible".
	SideEffects string `json:"sideEffects"`
	// SuggestedTimeoutMs is set where more time would have helped.
	SuggestedTimeoutMs *int64 `json:"suggestedTimeoutMs"`
	Hint               string `json:"hint"`
	// NotGranted are paths that a failed call has named, and that the host has and
	// the call could not see.
	NotGranted []string `json:"notGranted,omitempty"`
}

// OutputBytes is about what the result holds of what the tool gave out.
func (r *Result) OutputBytes() int {
	out := r.Output
	n := len(r.Structured) + len(r.Meta) + len(out.Stdout.Head) + len(out.Stdout.Tail) + len(out.Stderr.Head) + len(out.Stderr.Tail)
	for _, c := range r.Content {
		n += c.Bytes()
	}
	return n
}

// OK is true for a complete result.
func (r *Result) OK() bool { return r.Status == StatusOK }

// Text joins the text content. Of a call that gave no result but what it wrote, as
// a plain command does, it is that: stdout, with a note where bytes are missing.
func (r *Result) Text() string {
	return r.textBegin(math.MaxInt)
}

// textBegin joins texts until they have enough bytes.
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

// begin is what is kept of a stream, or at least enough bytes of it.
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

// Display is the result for people, cut at 2000 characters: its text if it is
// complete, else its message.
func (r *Result) Display() string {
	if r.OK() {
		return Cut(r.textBegin((maxDisplayRunes+1)*utf8.UTFMax), maxDisplayRunes)
	}
	return Cut(r.Message, maxDisplayRunes)
}

const maxDisplayRunes = 2000

// Cut cuts s after so many characters, however long it is, and marks that.
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
