package client

import (
	"encoding/json"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Tool is one of the catalogue.
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

// Annotations are a tool's claims of itself.
type Annotations struct {
	ReadOnly    *bool `json:"readOnly,omitempty" jsonschema:"a call changes nothing outside of its own process"`
	Destructive *bool `json:"destructive,omitempty" jsonschema:"a call may destroy something"`
	Idempotent  *bool `json:"idempotent,omitempty" jsonschema:"a second call with the same arguments changes nothing more"`
	OpenWorld   *bool `json:"openWorld,omitempty" jsonschema:"a call deals with what is outside of this machine"`
}

// TurnSpec begins a turn. Zero fields are the defaults.
type TurnSpec struct {
	TurnID       string `json:"turnId,omitempty" jsonschema:"of the new turn; default one that is made up"`
	AgentID      string `json:"agentId,omitempty" jsonschema:"whose turn it is, for the record"`
	SessionID    string `json:"sessionId,omitempty" jsonschema:"what it belongs to, for the record"`
	ParentTurnID string `json:"parentTurnId,omitempty" jsonschema:"makes it a child: an abort or the end of that turn aborts it too"`
	Headless     bool   `json:"headless,omitempty" jsonschema:"nobody can be asked: what needs an approval is denied at once"`
	MaxCalls     int    `json:"maxCalls,omitempty" jsonschema:"how many calls it may make; 0 is the default, 50"`
	ToolTimeMs   int64  `json:"toolTimeMs,omitempty" jsonschema:"time in which calls may run, together; default no limit"`
	DeadlineMs   int64  `json:"deadlineMs,omitempty" jsonschema:"limit of the whole turn, less human waiting; default none"`
	ReserveMs    int64  `json:"reserveMs,omitempty" jsonschema:"what is kept of the deadline for the model's last answer, and less than it; 0 is the default, 10000"`
}

// Turn is an active one.
type Turn struct {
	TurnID              string        `json:"turnId"`
	AgentID             string        `json:"agentId"`
	SessionID           string        `json:"sessionId"`
	ParentTurnID        string        `json:"parentTurnId,omitempty"`
	StartedAt           time.Time     `json:"startedAt"`
	CurrentTools        []CurrentTool `json:"currentTools" jsonschema:"calls that run or wait"`
	ToolCallCount       int           `json:"toolCallCount"`
	TimedOutTools       []string      `json:"timedOutTools" jsonschema:"names of tools whose time was over, once each"`
	PendingInteractions []Interaction `json:"pendingInteractions"`
}

// CurrentTool is a call of the batch under way.
type CurrentTool struct {
	CallID      string    `json:"toolCallId"`
	Tool        string    `json:"toolName"`
	State       string    `json:"state" jsonschema:"queued, asking or running"`
	StartedAt   time.Time `json:"startedAt,omitzero" jsonschema:"absent if it has not begun"`
	TimeoutMs   int64     `json:"timeoutMs,omitempty" jsonschema:"the timeout in force; absent if it is infinite, or the call does not run yet"`
	HumanWaitMs int64     `json:"humanWaitMs,omitempty" jsonschema:"how long it has waited for humans since it began; its clocks stood still for so long"`
	Usage       *Usage    `json:"usage,omitempty" jsonschema:"what its processes use; absent if there are none"`
}

// Usage is what a call's processes use at a moment.
type Usage struct {
	CPUMs       int64 `json:"cpuMs" jsonschema:"CPU time since the call began"`
	MemoryBytes int64 `json:"memoryBytes" jsonschema:"page cache included"`
	Pids        int64 `json:"pids" jsonschema:"processes and threads"`
}

// Call is one tool call that a model asked for.
type Call struct {
	ID        string          `json:"id" jsonschema:"the model's own for it, unique in the batch"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"an object; default {}"`
	Meta      json.RawMessage `json:"meta,omitempty" jsonschema:"an object beside the arguments, as MCP's _meta; dev.toolhost/timeoutMs in it asks for a timeout"`
}

// Batch is what a turn runs at once.
type Batch struct {
	Calls []Call `json:"calls"`
}

// Results are those of a batch, one for each call, in call order.
type Results struct {
	Results []*api.Result `json:"results"`
}

// Interaction is a question to a human that waits for an answer.
type Interaction struct {
	ID        string          `json:"interactionId"`
	TurnID    string          `json:"turnId"`
	CallID    string          `json:"toolCallId"`
	Tool      string          `json:"toolName"`
	Kind      string          `json:"kind" jsonschema:"approval, confirm (of something destructive), password, device_code or questionnaire"`
	Prompt    string          `json:"prompt"`
	Schema    json.RawMessage `json:"schema,omitempty" jsonschema:"JSON Schema of the value wanted; absent for yes or no"`
	Default   json.RawMessage `json:"default,omitempty" jsonschema:"what the schema declares as default, for people to accept"`
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"the call's, for an approval"`
	Policy    *Policy         `json:"policy,omitempty" jsonschema:"what the call may touch, for an approval"`
	TimeoutMs int64           `json:"timeoutMs" jsonschema:"from its beginning; then it is denied"`
	ExpiresAt time.Time       `json:"expiresAt"`
	Secret    bool            `json:"secret,omitempty" jsonschema:"the answer must be shown and kept nowhere"`
}

// Policy is what a call may touch.
type Policy struct {
	Tier    string   `json:"tier" jsonschema:"native, or none: no sandbox"`
	Read    []string `json:"read"`
	Write   []string `json:"write"`
	Network string   `json:"network" jsonschema:"none or host"`
}

// Answer is a human's to an interaction.
type Answer struct {
	Approve bool            `json:"approve,omitempty" jsonschema:"the answer to yes or no; false denies, unless there is a value"`
	Value   json.RawMessage `json:"value,omitempty" jsonschema:"answers what has a schema"`
	Always  bool            `json:"always,omitempty" jsonschema:"approves this tool for the rest of the turn"`
	// Unanswered is turn.OutcomeDismissed or turn.OutcomeFailed.
	Unanswered string `json:"unanswered,omitempty" jsonschema:"dismissed: a human was asked and said neither yes nor no; failed: nobody could be asked. All else is then left out"`
}

// TurnSummary is a turn of the history.
type TurnSummary struct {
	TurnID   string         `json:"turnId"`
	AgentID  string         `json:"agentId" jsonschema:"whose turn it was, empty if nobody has said so"`
	State    string         `json:"state" jsonschema:"open, ended or aborted"`
	Reason   string         `json:"reason" jsonschema:"of the abort"`
	Started  time.Time      `json:"started"`
	Ended    time.Time      `json:"ended,omitzero" jsonschema:"absent while open"`
	Events   int64          `json:"events"`
	Calls    int            `json:"calls"`
	Outcomes map[string]int `json:"outcomes" jsonschema:"how many calls have which status"`
}

// CallSummary is a call of the history.
type CallSummary struct {
	TurnID    string    `json:"turnId"`
	CallID    string    `json:"toolCallId" jsonschema:"the call's id, made unique in its turn"`
	Tool      string    `json:"toolName"`
	Status    string    `json:"status" jsonschema:"that of its result; open if it has none yet"`
	Reason    string    `json:"reason"`
	Queued    time.Time `json:"queued"`
	Started   time.Time `json:"started,omitzero" jsonschema:"absent if it never ran"`
	Ended     time.Time `json:"ended,omitzero" jsonschema:"absent while open"`
	ElapsedMs int64     `json:"elapsedMs"`
	HasResult bool      `json:"hasResult"`
}

// Done says that a request has been carried out.
type Done struct {
	OK            bool   `json:"ok"`
	TurnID        string `json:"turnId,omitempty"`
	CallID        string `json:"toolCallId,omitempty"`
	InteractionID string `json:"interactionId,omitempty"`
}

// LoginLink lets one browser in, once.
type LoginLink struct {
	Path      string    `json:"path" jsonschema:"to be opened below the daemon's address"`
	URL       string    `json:"url,omitempty" jsonschema:"the whole link; absent if the daemon does not listen on TCP"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Health tells whether a daemon is there, and ready for new calls.
type Health struct {
	Status  string `json:"status" jsonschema:"ok, or unready"`
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty" jsonschema:"why it is unready"`
}

// KindGap is the kind of the event that brings a Gap.
const KindGap = api.EventGap

// Gap is word in a stream of events that some of them are not in it.
type Gap = api.Gap

// Lists, as they are on the wire.
type (
	// Tools are the catalogue.
	Tools struct {
		Tools    []Tool   `json:"tools"`
		Problems []string `json:"problems" jsonschema:"why configured tools are missing, one line each"`
	}
	// Turns are the active ones, oldest first.
	Turns struct {
		Turns []Turn `json:"turns"`
	}
	// Interactions are those that wait, of all turns.
	Interactions struct {
		Interactions []Interaction `json:"interactions"`
	}
	// TurnSummaries are a page of the history, the last started first.
	TurnSummaries struct {
		Turns []TurnSummary `json:"turns"`
	}
	// CallSummaries are a page of the history, the last queued first.
	CallSummaries struct {
		Calls []CallSummary `json:"calls"`
	}
)

// Failure is the body of every answer that is an error.
type Failure struct {
	Error Error `json:"error"`
}

// Error is why the daemon has refused a request.
type Error struct {
	// Status is that of HTTP; it is not on the wire.
	Status  int    `json:"-"`
	Code    string `json:"code" jsonschema:"what to branch on, such as not_found"`
	Message string `json:"message" jsonschema:"one line for people"`
	Remedy  string `json:"remedy" jsonschema:"what to do about it"`
}

func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Message
	}
	return e.Message + ": " + e.Remedy
}
