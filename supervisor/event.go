package supervisor

import (
	"cmp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
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
	ElapsedMs int64    `json:"elapsedMs,omitempty"`
	Status    Status   `json:"status,omitempty"`
	Fraction  *float64 `json:"fraction,omitempty"`
	Message   string   `json:"message,omitempty"`
	// Stream (content, stdout, stderr) and Content belong to output.
	Stream  string   `json:"stream,omitempty"`
	Content *Content `json:"content,omitempty"`
	// TimeoutMs, of started and timeout, is the timeout in force; 0 is infinite.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
	// Display is the result's message or text, cut at 2000 characters, of
	// finished and failed.
	Display string `json:"display,omitempty"`
}

// StatusRunning is the status in progress events.
const StatusRunning Status = "running"

const maxDisplayRunes = 2000

// publisher sends events without ever waiting for their reader. It may be used
// from several goroutines.
type publisher struct {
	to     chan<- Event
	callID string
	tool   string

	mu     sync.Mutex
	missed int
	left   int64 // of the output that may be told of
}

// defaultEventOutputBytes is what is told of a call's output while it runs,
// leastOutputEvent what each event of it counts for at least.
const (
	defaultEventOutputBytes = 4 << 20
	leastOutputEvent        = 256
)

func newPublisher(r Request, callID string) *publisher {
	return &publisher{to: r.Events, callID: callID, tool: r.toolName(), left: cmp.Or(r.EventOutputBytes, defaultEventOutputBytes)}
}

func (p *publisher) on() bool { return p.to != nil }

// tells says whether n more bytes of output are to be published. Those that are
// not count as missed, and cost nothing.
func (p *publisher) tells(n int) bool {
	if !p.on() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left > 0 {
		p.left -= leastOutputEvent + int64(min(n, maxEventBytes))
	}
	if p.left <= 0 {
		p.missed++
	}
	return p.left > 0
}

func (p *publisher) publish(e Event) {
	if !p.on() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.Message, e.Content = cutText(e.Message), cutContent(e.Content)
	e.Time, e.CallID, e.Tool, e.Missed = time.Now().UTC(), p.callID, p.tool, p.missed
	select {
	case p.to <- e:
		p.missed = 0
	default:
		p.missed++
	}
}

// textBegin is as much of p, as text, as an event can hold, and a little more
// where there is more.
func textBegin(p []byte) string {
	return strings.ToValidUTF8(string(p[:min(len(p), maxEventBytes+utf8.UTFMax)]), "\uFFFD")
}

// maxEventBytes bounds one event: events wait for slow readers in memory. The
// result has what an event leaves out.
const maxEventBytes = 16 << 10

func cutText(s string) string {
	if len(s) <= maxEventBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxEventBytes], "") + "…"
}

func cutContent(c *Content) *Content {
	if c == nil || len(c.Text)+len(c.JSON)+len(c.Data)+len(c.URI)+len(c.Name) <= maxEventBytes {
		return c
	}
	return &Content{Type: c.Type, Text: cutText(c.Text), MIMEType: c.MIMEType, URI: cutText(c.URI), Name: cutText(c.Name)}
}

// display cuts s for people.
func display(s string) string {
	if r := []rune(s); len(r) > maxDisplayRunes {
		return string(r[:maxDisplayRunes]) + "…"
	}
	return s
}
