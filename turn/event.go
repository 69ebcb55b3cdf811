package turn

import (
	"encoding/json"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Kinds of events beside those of single calls (supervisor.EventKind).
const (
	EventTurnStart           = "turn_start"
	EventTurnEnd             = "turn_end"
	EventTurnAbort           = "turn_abort"
	EventInteractionPending  = "interaction_pending"
	EventInteractionRequest  = "interaction_request"
	EventInteractionResponse = "interaction_response"
	EventReaped              = "tool_reaped"
)

// Audit kinds: what was decided about calls, and by whom. Each interaction has
// one InteractionRequested. One InteractionAnswered follows if somebody said yes
// or no, one InteractionTimedOut if nobody did in time. Neither follows where
// nobody decided: of an interaction that was cancelled the record is its
// interaction_response; in a headless turn InteractionRequested itself has the
// outcome headless, with the declared default if that was used. Whatever the
// outcome, a call that is refused for it has a ToolCallDenied.
const (
	AuditRequested = "InteractionRequested"
	AuditAnswered  = "InteractionAnswered"
	AuditTimedOut  = "InteractionTimedOut"
	AuditDenied    = "ToolCallDenied"
)

// Event is something that happened in a turn. Only the fields of its kind are
// set besides the first four. Its JSON is written once and kept.
type Event struct {
	// Seq counts a turn's events from 1 without gaps.
	Seq    int64     `json:"seq"`
	Time   time.Time `json:"time"`
	TurnID string    `json:"turnId"`
	Kind   string    `json:"kind"`

	CallID string `json:"toolCallId,omitempty"`
	Tool   string `json:"toolName,omitempty"`

	// Of tool_progress, tool_started, tool_timeout, tool_output, tool_finished
	// and tool_failed, as in supervisor.Event.
	ElapsedMs int64        `json:"elapsedMs,omitempty"`
	Status    api.Status   `json:"status,omitempty"`
	Fraction  *float64     `json:"fraction,omitempty"`
	Message   string       `json:"message,omitempty"`
	Stream    string       `json:"stream,omitempty"`
	Content   *api.Content `json:"content,omitempty"`
	TimeoutMs int64        `json:"timeoutMs,omitempty"`
	Display   string       `json:"display,omitempty"`
	// Missed counts output and progress events before this one that came too
	// fast to be shown, or after as much output as is (Config.EventOutputBytes).
	Missed int `json:"missed,omitempty"`

	// Reason and Decider, of turn_abort and ToolCallDenied.
	Reason  api.Reason `json:"reason,omitempty"`
	Decider string     `json:"decider,omitempty"`

	// AgentID, SessionID and ParentID, of turn_start.
	AgentID   string `json:"agentId,omitempty"`
	SessionID string `json:"sessionId,omitempty"`
	ParentID  string `json:"parentTurnId,omitempty"`

	// Of the interaction kinds.
	InteractionID string          `json:"interactionId,omitempty"`
	Interaction   Kind            `json:"interactionKind,omitempty"`
	Presentation  string          `json:"presentation,omitempty"`
	Pending       *bool           `json:"pending,omitempty"`
	Prompt        string          `json:"prompt,omitempty"`
	Schema        json.RawMessage `json:"schema,omitempty"`
	ExpiresAt     *time.Time      `json:"expiresAt,omitempty"`
	Default       json.RawMessage `json:"default,omitempty"`
	Outcome       string          `json:"outcome,omitempty"`
	By            string          `json:"by,omitempty"`
}

// Record is an event as it is shown: JSON holds its bytes, the same in every
// replay. Result is the call's, of tool_finished and tool_failed.
type Record struct {
	Event  Event
	JSON   []byte
	Result *api.Result
	// Gap, if not nil, says which events are missing; it is in what Turn.Events
	// gives only, and Event has the first four fields.
	Gap *Gap
	// Asked is when the call of Result came, TraceParent its own. They are for
	// Config.Observe: what is replayed has them no more.
	Asked       time.Time
	TraceParent string
}

// Journal keeps records before they are shown. Append commits them, in order,
// or fails as a whole. It is called from one goroutine per turn.
type Journal interface {
	Append(records ...Record) error
}
