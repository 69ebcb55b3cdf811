package api

import (
	"encoding/json"
	"time"
)

// EventKind names what happened.
type EventKind string

// Kinds of events, in the order in which a call can have them: queued first,
// then started if it started, the others, and last exactly one of finished and
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

// Kinds of events beside those of single calls.
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

// Audit kinds: what was decided about calls, and by whom. Each interaction has
// one InteractionRequested. One InteractionAnswered follows if somebody said yes
// or no, one InteractionTimedOut if nobody did in time. Neither follows where
// nobody decided: of an interaction that was cancelled the record is its
// interaction_response; in a headless turn InteractionRequested itself has the
// outcome headless, with the declared default if that was used. Whatever the
// outcome, a call that is refused for it has a ToolCallDenied.
const (
	AuditRequested EventKind = "InteractionRequested"
	AuditAnswered  EventKind = "InteractionAnswered"
	AuditTimedOut  EventKind = "InteractionTimedOut"
	AuditDenied    EventKind = "ToolCallDenied"
)

// Event is something that happened in a turn, or to a call. Only the fields of
// its kind are set besides the first four. Those of a call that a turn has not
// numbered have neither a Seq nor a TurnID. The JSON of a turn's events is
// written once and kept.
type Event struct {
	// Seq counts a turn's events from 1 without gaps.
	Seq    int64     `json:"seq"`
	Time   time.Time `json:"time"`
	TurnID string    `json:"turnId"`
	Kind   EventKind `json:"kind"`

	CallID string `json:"toolCallId,omitempty"`
	Tool   string `json:"toolName,omitempty"`

	// Of events of a call. ElapsedMs, Status (running), Fraction and Message
	// belong to tool_progress, which comes every 5 s of a long call and when the
	// tool reports (Message also to what the next host records of a turn whose host has
	// died); Stream (content, stdout, stderr) and Content to tool_output.
	// TimeoutMs, of tool_started and tool_timeout, is the timeout in force; 0 is
	// infinite. Display, of tool_finished and tool_failed, is the result's message
	// or text, cut at 2000 characters.
	ElapsedMs int64    `json:"elapsedMs,omitempty"`
	Status    Status   `json:"status,omitempty"`
	Fraction  *float64 `json:"fraction,omitempty"`
	Message   string   `json:"message,omitempty"`
	// Log, of tool_log, is a wrapped server's message as it made it.
	Log       *LogEntry `json:"log,omitempty"`
	Stream    string    `json:"stream,omitempty"`
	Content   *Content  `json:"content,omitempty"`
	TimeoutMs int64     `json:"timeoutMs,omitempty"`
	Display   string    `json:"display,omitempty"`
	EventProcesses
	// Missed counts output and progress events before this one that came too
	// fast to be shown, or after as much output as is.
	Missed int `json:"missed,omitempty"`

	// Reason and Decider, of turn_abort and ToolCallDenied.
	Reason  Reason `json:"reason,omitempty"`
	Decider string `json:"decider,omitempty"`

	// AgentID, SessionID, Owner and ParentID, of turn_start. Owner is the identity
	// that began the turn.
	AgentID   string `json:"agentId,omitempty"`
	SessionID string `json:"sessionId,omitempty"`
	Owner     string `json:"owner,omitempty"`
	ParentID  string `json:"parentTurnId,omitempty"`

	// Of the interaction kinds.
	InteractionID string          `json:"interactionId,omitempty"`
	Interaction   InteractionKind `json:"interactionKind,omitempty"`
	Presentation  string          `json:"presentation,omitempty"`
	Pending       *bool           `json:"pending,omitempty"`
	Prompt        string          `json:"prompt,omitempty"`
	Schema        json.RawMessage `json:"schema,omitempty"`
	ExpiresAt     *time.Time      `json:"expiresAt,omitempty"`
	Default       json.RawMessage `json:"default,omitempty"`
	Outcome       string          `json:"outcome,omitempty"`
	// By is who has answered, with ByFor and what a yes is for beside one call behind it.
	By string `json:"by,omitempty"`
}

// EventProcesses are of tool_placed and tool_reaped.
type EventProcesses struct {
	// Reaped, of tool_reaped, counts the processes that are gone.
	Reaped int `json:"reaped,omitempty"`
	// Worker, of tool_placed, is the worker that will be told to start the call, once this
	// event is on record; empty where the one before has not started it, and the daemon's own
	// machine makes it after all. Attempt counts the workers that the call was offered to, this
	// one included.
	Worker  string `json:"worker,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
}

// At says, of tool_placed, where the call is to be from then on; nil is the daemon's own
// machine. Whether it still runs there is not known by that.
func (e EventProcesses) At() *Where {
	if e.Worker == "" {
		return nil
	}
	return &Where{Worker: e.Worker, Attempt: e.Attempt, StillRunning: "unknown"}
}

// ByFor stands before the turn, session or identity that a yes is for.
const ByFor = ", for the "

// LogEntry is a message of a wrapped server.
type LogEntry struct {
	Level  string          `json:"level"`
	Logger string          `json:"logger,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	// Meta is what stands beside them, an object.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// Record is an event as it is shown.
type Record struct {
	Event
	// JSON holds the event's bytes, the same in every replay.
	JSON []byte
	// Gap, if not nil, says which events are missing instead; Event has the first
	// four fields only.
	Gap *Gap
}

// EventGap is the kind of a record that stands for events that are missing. It
// is not an event of the turn: none is numbered, or journalled, for it.
const EventGap EventKind = "gap"

// Gap stands for events that are not in a stream of them: neither in memory any
// more nor on record.
type Gap struct {
	TurnID string `json:"turnId"`
	From   int64  `json:"fromSeq" jsonschema:"the first event that is missing"`
	To     int64  `json:"toSeq" jsonschema:"the last one"`
}
