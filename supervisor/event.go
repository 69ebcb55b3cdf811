package supervisor

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
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

// Event is something that happened to a call. Only the fields of its kind are
// set besides the first four.
type Event struct {
	Kind   EventKind `json:"kind"`
	Time   time.Time `json:"time"`
	CallID string    `json:"toolCallId"`
	Tool   string    `json:"toolName"`
	// Missed counts the events before this one that the reader was too slow
	// for.
	Missed int `json:"missed,omitempty"`

	// ElapsedMs, Status (running), Fraction and Message belong to progress,
	// which comes every 5 s of a long call and when the tool reports.
	ElapsedMs int64      `json:"elapsedMs,omitempty"`
	Status    api.Status `json:"status,omitempty"`
	Fraction  *float64   `json:"fraction,omitempty"`
	Message   string     `json:"message,omitempty"`
	// Stream (content, stdout, stderr) and Content belong to output.
	Stream  string       `json:"stream,omitempty"`
	Content *api.Content `json:"content,omitempty"`
	// TimeoutMs, of started and timeout, is the timeout in force; 0 is infinite.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
	// Display is the result's message or text, cut at 2000 characters, of
	// finished and failed.
	Display string `json:"display,omitempty"`
}

// textBegin is as much of p, as text, as an event can hold, and a little more
// where there is more.
func textBegin(p []byte) string {
	return strings.ToValidUTF8(string(p[:min(len(p), maxEventBytes+utf8.UTFMax)]), "\uFFFD")
}

// maxEventBytes bounds one event: events wait for slow readers in memory. The
// result has what an event leaves out.
const maxEventBytes = 16 << 10

func cutText(s string) string { return cutAt(s, maxEventBytes) }

func cutAt(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

func cutContent(c *api.Content) *api.Content {
	if c == nil || len(c.Text)+len(c.JSON)+len(c.Data)+len(c.URI)+len(c.Name) <= maxEventBytes {
		return c
	}
	return &api.Content{Type: c.Type, Text: cutText(c.Text), MIMEType: c.MIMEType, URI: cutText(c.URI), Name: cutText(c.Name)}
}
