package turn

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/toolhost/toolhost/supervisor"
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

// Audit kinds: what was decided about calls, and by whom.
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
	ElapsedMs int64               `json:"elapsedMs,omitempty"`
	Status    supervisor.Status   `json:"status,omitempty"`
	Fraction  *float64            `json:"fraction,omitempty"`
	Message   string              `json:"message,omitempty"`
	Stream    string              `json:"stream,omitempty"`
	Content   *supervisor.Content `json:"content,omitempty"`
	TimeoutMs int64               `json:"timeoutMs,omitempty"`
	Display   string              `json:"display,omitempty"`
	// Missed counts output and progress events before this one that came too
	// fast to be shown.
	Missed int `json:"missed,omitempty"`

	// Reason and Decider, of turn_abort and ToolCallDenied.
	Reason  string `json:"reason,omitempty"`
	Decider string `json:"decider,omitempty"`

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
	Result *supervisor.Result
}

// Journal keeps records before they are shown. Append commits them, in order,
// or fails as a whole. It is called from one goroutine per turn.
type Journal interface {
	Append(records ...Record) error
}

// Subscription is one reader of a turn's events.
type Subscription struct {
	// C gives the records in order and is closed after the last one of the
	// turn, or when the reader is too slow: then Gap says from where to resume.
	C    <-chan Record
	t    *Turn
	send chan Record
	last int64 // the newest that was sent; the owner's
	gap  bool  // the owner's; read after C is closed
}

// Gap is true, once C is closed, if the reader was too slow to be served on. It
// misses nothing by subscribing again with Last.
func (s *Subscription) Gap() bool { return s.gap }

// Last is the newest event that C has given or holds; valid once C is closed.
func (s *Subscription) Last() int64 { return s.last }

// Close ends the subscription.
func (s *Subscription) Close() { s.t.do(func() { s.t.unsubscribe(s) }) }

// maxKept bounds the records that a turn keeps in memory for readers that
// resume; older ones are in the journal.
const maxKept = 4096

// subscriberBuffer is how far a reader may lag behind what happens.
const subscriberBuffer = 256

// Subscribe gives the events after seq: 0 is all. ok is false if the turn no
// longer holds the first of them; they are in the journal.
func (t *Turn) Subscribe(after int64) (s *Subscription, ok bool) {
	s = &Subscription{t: t}
	if !t.do(func() { ok = t.subscribe(s, after) }) {
		ok = t.subscribe(s, after) // the turn is over, and nobody else's
	}
	return s, ok
}

func (t *Turn) subscribe(s *Subscription, after int64) bool {
	last := t.seq - int64(len(t.outbox))
	first := last - int64(len(t.kept)) + 1
	if after+1 < first || after > last {
		return false
	}
	missed := t.kept[after+1-first:]
	s.send = make(chan Record, len(missed)+subscriberBuffer)
	s.C = s.send
	for _, r := range missed {
		s.send <- r
	}
	s.last = last
	if t.over {
		close(s.send)
		return true
	}
	t.subscribers = append(t.subscribers, s)
	return true
}

func (t *Turn) unsubscribe(s *Subscription) {
	for i, other := range t.subscribers {
		if other == s {
			t.subscribers = append(t.subscribers[:i], t.subscribers[i+1:]...)
			close(s.send)
			return
		}
	}
}

// emit numbers an event. It is shown by the next flush.
func (t *Turn) emit(e Event, result *supervisor.Result) {
	t.seq++
	e.Seq, e.Time, e.TurnID = t.seq, t.now().UTC(), t.info.TurnID
	raw, err := json.Marshal(e)
	if err != nil { // only content that came as JSON and is none
		e.Content, e.Schema, e.Default = nil, nil, nil
		raw, _ = json.Marshal(e)
	}
	t.outbox = append(t.outbox, Record{Event: e, JSON: raw, Result: result})
}

// flush has the new events journalled, together, and shows them; who waited for
// what they tell goes on. Where the journal fails, the turn takes no new calls;
// what runs goes on to its end, and its events are still shown.
func (t *Turn) flush() {
	for some := range slices.Chunk(t.outbox, maxAppend) {
		t.keep(some)
	}
	for _, record := range t.outbox {
		t.show(record)
	}
	t.outbox = t.outbox[:0]
	for _, done := range t.flushed {
		close(done)
	}
	t.flushed = nil
}

// maxAppend bounds what is journalled at once.
const maxAppend = 512

func (t *Turn) keep(records []Record) {
	if t.m.config.Journal == nil || t.journalErr != nil {
		return
	}
	if err := t.m.config.Journal.Append(records...); err != nil {
		t.journalErr = err
		t.m.config.Logger.Error("the journal fails: the turn takes no new calls", "turn", t.info.TurnID, "error", err)
	}
}

func (t *Turn) show(record Record) {
	if len(t.kept) == maxKept {
		t.kept = append(t.kept[:0:0], t.kept[maxKept/4:]...)
	}
	t.kept = append(t.kept, record)
	for i := 0; i < len(t.subscribers); {
		s := t.subscribers[i]
		select {
		case s.send <- record:
			s.last = record.Event.Seq
			i++
		default: // it resumes from s.last
			s.gap = true
			t.unsubscribe(s)
		}
	}
}
