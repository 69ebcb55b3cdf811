package api

import (
	"encoding/json"
	"time"
)

// EventKind is the kind of an Event.
type EventKind string

// Kinds of a call's events. The first is queued, then started if the call
// started, then the others in any order, and last exactly one of finished and
// failed.
const (
	EventQueued   EventKind = "tool_queued"
	EventStarted  EventKind = "tool_started"
	EventProgress EventKind = "tool_progress"
	EventOutput   EventKind = "tool_output"
	EventLog      EventKind = "tool_log"
	EventOverran  EventKind = "tool_overran"
	EventTimeout  EventKind = "tool_timeout"
	EventFinished EventKind = "tool_finished"
	EventFailed   EventKind = "tool_failed"
)

// Kinds of a turn's other events.
const (
	EventTurnStart           EventKind = "turn_start"
	EventTurnEnd             EventKind = "turn_end"
	EventTurnAbort           EventKind = "turn_abort"
	EventInteractionPending  EventKind = "interaction_pending"
	EventInteractionRequest  EventKind = "interaction_request"
	EventInteractionResponse EventKind = "interaction_response"
	EventReaped              EventKind = "tool_reaped"
	EventPlaced              EventKind = "tool_placed"
)

// Audit kinds record decisions about calls, and who made them. Each interaction
// has one InteractionRequested. One InteractionAnswered follows if somebody said
// yes or no, one InteractionTimedOut if nobody did in time. Neither follows if
// nobody decided: a cancelled interaction is recorded by its
// interaction_response; in a headless turn InteractionRequested itself has the
// outcome headless, with the declared default if that was used. A call that is
// refused for any of these outcomes has a ToolCallDenied.
const (
	AuditRequested EventKind = "InteractionRequested"
	AuditAnswered  EventKind = "InteractionAnswered"
	AuditTimedOut  EventKind = "InteractionTimedOut"
	AuditDenied    EventKind = "ToolCallDenied"
)

// Event is something that happened in a turn, or to a call. Besides the first
// four fields, only those of its kind are set. An event of a call that no turn
// has numbered has neither Seq nor TurnID. The JSON of a turn's events is
// encoded once and kept.
type Event struct {
	// Seq counts a turn's events from 1 without gaps.
	Seq    int64     `json:"seq"`
	Time   time.Time `json:"time"`
	TurnID string    `json:"turnId"`
	Kind   EventKind `json:"kind"`

	CallID string `json:"toolCallId,omitempty"`
	Tool   string `json:"toolName,omitempty"`

	// Fields of a call's events. ElapsedMs, Status (running), Fraction and Message
	// belong to tool_progress, which is sent every 5 s of a long call and when the
	// tool reports progress. (A host that closes the turn of a host that died sets
	// Message, too.) Stream (content, stdout, stderr) and Content belong to
	// tool_output. TimeoutMs, of tool_started and tool_timeout, is the timeout in
	// force; 0 is infinite. Display, of tool_finished and tool_failed, is the
	// result's message or text, cut at 2000 characters.
	ElapsedMs int64    `json:"elapsedMs,omitempty"`
	Status    Status   `json:"status,omitempty"`
	Fraction  *float64 `json:"fraction,omitempty"`
	Message   string   `json:"message,omitempty"`
	// Log, of tool_log, is a wrapped server's log message, unchanged.
	Log       *LogEntry `json:"log,omitempty"`
	Stream    string    `json:"stream,omitempty"`
	Content   *Content  `json:"content,omitempty"`
	TimeoutMs int64     `json:"timeoutMs,omitempty"`
	Display   string    `json:"display,omitempty"`
	EventProcesses
	// Missed counts the output and progress events before this one that were
	// dropped: they came too fast, or the call's bound on shown output was reached.
	Missed int `json:"missed,omitempty"`

	// Fields of turn_abort and ToolCallDenied.
	Reason  Reason `json:"reason,omitempty"`
	Decider string `json:"decider,omitempty"`

	// Fields of turn_start. Owner is the identity that began the turn.
	AgentID   string `json:"agentId,omitempty"`
	SessionID string `json:"sessionId,omitempty"`
	Owner     string `json:"owner,omitempty"`
	ParentID  string `json:"parentTurnId,omitempty"`

	// Fields of the interaction kinds.
	InteractionID string          `json:"interactionId,omitempty"`
	Interaction   InteractionKind `json:"interactionKind,omitempty"`
	Presentation  string          `json:"presentation,omitempty"`
	Pending       *bool           `json:"pending,omitempty"`
	Prompt        string          `json:"prompt,omitempty"`
	Schema        json.RawMessage `json:"schema,omitempty"`
	ExpiresAt     *time.Time      `json:"expiresAt,omitempty"`
	Default       json.RawMessage `json:"default,omitempty"`
	Outcome       string          `json:"outcome,omitempty"`
	// By is who answered. For a lasting approval, ByFor and its scope follow.
	By string `json:"by,omitempty"`
}

// EventProcesses holds the fields of tool_placed and tool_reaped.
type EventProcesses struct {
	// Reaped, of tool_reaped, counts the processes that have ended.
	Reaped int `json:"reaped,omitempty"`
	// Worker, of tool_placed, is the worker that is told to start the call once this event is
	// on record. It is empty if the worker before did not start the call and the daemon runs it
	// on its own machine. Attempt counts the workers that the call was offered to, this one
	// included.
	Worker  string `json:"worker,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
}

// At returns, for tool_placed, the worker that runs the call from then on; nil means the
// daemon's own machine. StillRunning is "unknown".
func (e EventProcesses) At() *Where {
	if e.Worker == "" {
		return nil
	}
	return &Where{Worker: e.Worker, Attempt: e.Attempt, StillRunning: "unknown"}
}

// ByFor precedes the scope of a lasting approval in Event.By: a turn, session or identity.
const ByFor = ", for the "

// LogEntry is a log message of a wrapped server.
type LogEntry struct {
	Level  string          `json:"level"`
	Logger string          `json:"logger,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	// Meta is what stands beside them, an object.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// Record is an entry of a stream of events.
type Record struct {
	Event
	// JSON is the event's encoding, the same bytes in every replay.
	JSON []byte
	// Gap, if not nil, says which events are missing here; only the first four
	// fields of Event are then set.
	Gap *Gap
}

// EventGap is the kind of a record with a Gap. It is not an event of the turn:
// it has no number and is not in the journal.
const EventGap EventKind = "gap"

// Gap is a range of events that are missing from a stream, because they are no
// longer in memory and not in the journal.
type Gap struct {
	TurnID string `json:"turnId"`
	From   int64  `json:"fromSeq" jsonschema:"the first event that is missing"`
	To     int64  `json:"toSeq" jsonschema:"the last one"`
}
