package api

import (
	"encoding/json"
	"time"
)

// Tool is a tool in the catalogue.
type Tool struct {
	Name         string          `json:"name" jsonschema:"what calls name it by"`
	Title        string          `json:"title,omitempty" jsonschema:"for people"`
	Description  string          `json:"description,omitempty" jsonschema:"for the model"`
	InputSchema  json.RawMessage `json:"inputSchema" jsonschema:"JSON Schema of the arguments"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty" jsonschema:"JSON Schema of the result's structured"`
	Annotations  Annotations     `json:"annotations" jsonschema:"the tool's own claims; absent ones it does not make"`
	Mode         string          `json:"mode" jsonschema:"allow, ask (a human, before each call) or deny"`
	Exclusive    bool            `json:"exclusive" jsonschema:"it runs alone within its turn"`
	TimeoutMs    *int64          `json:"timeoutMs" jsonschema:"timeout of a call that asks for none; null is infinite"`
	MaxTimeoutMs *int64          `json:"maxTimeoutMs,omitempty" jsonschema:"the most that a call may ask for; absent means no limit"`
	Source       string          `json:"source,omitempty" jsonschema:"where it comes from: a plugin, a command, an MCP server"`
}

// Annotations are a tool's claims about itself; nil means no claim.
type Annotations struct {
	ReadOnly    *bool `json:"readOnly,omitempty" jsonschema:"a call changes nothing outside of its own process"`
	Destructive *bool `json:"destructive,omitempty" jsonschema:"a call may destroy something"`
	Idempotent  *bool `json:"idempotent,omitempty" jsonschema:"a second call with the same arguments changes nothing more"`
	OpenWorld   *bool `json:"openWorld,omitempty" jsonschema:"a call deals with what is outside of this machine"`
}

// TurnSpec describes a turn to begin. Zero fields mean the defaults.
type TurnSpec struct {
	TurnID           string `json:"turnId,omitempty" jsonschema:"of the new turn, but not active, which stands for all turns; default one that is made up"`
	AgentID          string `json:"agentId,omitempty" jsonschema:"whose turn it is, for the record"`
	SessionID        string `json:"sessionId,omitempty" jsonschema:"what it belongs to, for the record; session_status is about all turns of one session"`
	ParentTurnID     string `json:"parentTurnId,omitempty" jsonschema:"makes it a child: an abort or the end of that turn aborts it too"`
	Headless         bool   `json:"headless,omitempty" jsonschema:"nobody can be asked: what needs an approval is denied at once"`
	MaxCalls         int    `json:"maxCalls,omitempty" jsonschema:"how many calls it may make; 0 is the default, 50"`
	ToolTimeMs       int64  `json:"toolTimeMs,omitempty" jsonschema:"time in which calls may run, together; default no limit"`
	DeadlineMs       int64  `json:"deadlineMs,omitempty" jsonschema:"limit of the whole turn, less human waiting; default none"`
	ReserveMs        int64  `json:"reserveMs,omitempty" jsonschema:"what is kept of the deadline for the model's last answer, and less than it; 0 is the default, 10000"`
	StreamDurationMs int64  `json:"streamDurationMs,omitempty" jsonschema:"how long the model may stream, all its round trips together, if it is told when it does; 0 is the default, 60000"`
	// InteractionTimeoutsMs are the turn's timeouts by kind, within the configured bounds.
	InteractionTimeoutsMs map[string]int64 `json:"interactionTimeoutsMs,omitempty" jsonschema:"how long humans are waited for, by kind of interaction, within the bounds that are configured; a kind that is not in it has the configured time"`
}

// Turn is an active turn.
type Turn struct {
	TurnID              string        `json:"turnId"`
	AgentID             string        `json:"agentId"`
	SessionID           string        `json:"sessionId"`
	Owner               string        `json:"owner,omitempty" jsonschema:"who began it: the identity, such as uid 1000 or token ci"`
	ParentTurnID        string        `json:"parentTurnId,omitempty"`
	Depth               int           `json:"depth,omitempty" jsonschema:"how many turns it is below one without a parent"`
	StartedAt           time.Time     `json:"startedAt"`
	CurrentTools        []CurrentTool `json:"currentTools" jsonschema:"calls that run or wait"`
	ToolCallCount       int           `json:"toolCallCount"`
	Streaming           bool          `json:"streaming" jsonschema:"the model streams, as far as the client that drives the turn tells"`
	StreamMs            int64         `json:"streamMs" jsonschema:"how long the model has streamed, without the time of tools and humans"`
	StreamLeftMs        int64         `json:"streamLeftMs" jsonschema:"how long it may still; then the turn is aborted"`
	TimedOutTools       []string      `json:"timedOutTools" jsonschema:"names of tools whose time was over, once each"`
	PendingInteractions []Interaction `json:"pendingInteractions"`
}

// Model reports what the model does.
type Model struct {
	Streaming bool `json:"streaming" jsonschema:"it begins to stream; false: it has ended. Saying it again changes nothing"`
}

// CurrentTool is a queued or running call of an active turn.
type CurrentTool struct {
	CallID      string        `json:"toolCallId"`
	Tool        string        `json:"toolName"`
	State       string        `json:"state" jsonschema:"queued, asking or running"`
	StartedAt   time.Time     `json:"startedAt,omitzero" jsonschema:"absent if it has not begun"`
	TimeoutMs   int64         `json:"timeoutMs,omitempty" jsonschema:"the timeout in force; absent if it is infinite, or the call does not run yet"`
	HumanWaitMs int64         `json:"humanWaitMs,omitempty" jsonschema:"how long it has waited for humans since it began; its clocks stood still for so long"`
	Worker      string        `json:"worker,omitempty" jsonschema:"the one of a fleet that makes it; absent on the daemon's own machine"`
	Usage       *CurrentUsage `json:"usage,omitempty" jsonschema:"what its processes use; absent while it has no processes"`
}

// CurrentUsage is a snapshot of what a call's processes use.
type CurrentUsage struct {
	CPUMs       int64 `json:"cpuMs" jsonschema:"CPU time since the call began"`
	MemoryBytes int64 `json:"memoryBytes" jsonschema:"page cache included"`
	Pids        int64 `json:"pids" jsonschema:"processes and threads"`
}

// Call is one tool call that a model asked for.
type Call struct {
	ID        string          `json:"id" jsonschema:"the model's own for it, unique in the batch"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"an object; default {}"`
	Retry     bool            `json:"retry,omitempty" jsonschema:"the host makes it again by itself, after a failure: the guard against identical calls does not count it"`
	Meta      json.RawMessage `json:"meta,omitempty" jsonschema:"an object beside the arguments, as MCP's _meta; dev.toolhost/timeoutMs in it asks for a timeout"`
}

// Batch is a list of calls that a turn runs together.
type Batch struct {
	Calls []Call `json:"calls"`
}

// BatchTurn is a turn of a single batch: it ends with the batch.
type BatchTurn struct {
	TurnSpec
	Batch
}

// Results are the results of a batch, one for each call, in call order.
type Results struct {
	Results []*Result `json:"results"`
}
