// Package publish sends a call's events to a reader that it never waits for.
package publish

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

// Publisher sends events without ever waiting for their reader. It may be used
// from several goroutines.
type Publisher struct {
	to     chan<- api.Event
	callID string
	tool   string

	mu     sync.Mutex
	halves map[string][]byte // of characters whose rest has not been read yet, by stream
	missed int
	left   int64 // of the output that may be told of
	notes  allowance
	// early is what the tool did before it had started as far as readers know.
	early   []api.Event
	started bool
}

// maxEarly bounds the events of a tool that is still starting.
const maxEarly = 16

// Rate limits on the events of a tool's progress and log: a burst, then so
// many a second.
const (
	notesBurst     = 256 << 10
	notesPerSecond = 4 << 10
)

// allowance is a store that is used up, and fills again with time.
type allowance struct {
	left float64
	at   time.Time
}

func (a *allowance) take(n int, now time.Time) bool {
	a.left = min(notesBurst, a.left+now.Sub(a.at).Seconds()*notesPerSecond)
	a.at = now
	if a.left <= 0 {
		return false
	}
	a.left -= float64(n)
	return true
}

// defaultEventOutputBytes bounds the output in a call's events,
// leastOutputEvent is the least that each of these counts for.
const (
	defaultEventOutputBytes = 4 << 20
	leastOutputEvent        = 256
)

// New makes the publisher of a call. outputBytes bounds the output in its events;
// 0 is 4 MiB.
func New(to chan<- api.Event, callID, tool string, outputBytes int64) *Publisher {
	return &Publisher{
		to: to, callID: callID, tool: tool, left: cmp.Or(outputBytes, defaultEventOutputBytes), halves: map[string][]byte{},
		notes: allowance{left: notesBurst, at: time.Now()},
	}
}

func (p *Publisher) on() bool { return p.to != nil }

// Written publishes what a process has written to a stream. The beginning of a
// character waits for its rest.
func (p *Publisher) Written(stream string, b []byte) {
	if p.on() {
		p.written(stream, p.whole(stream, b))
	}
}

// Ended publishes what waits for a rest that does not come.
func (p *Publisher) Ended(stream string) {
	p.mu.Lock()
	half := p.halves[stream]
	delete(p.halves, stream)
	p.mu.Unlock()
	p.written(stream, half)
}

func (p *Publisher) written(stream string, b []byte) {
	if len(b) > 0 && !p.spent(len(b)) {
		p.Output(stream, api.Content{Type: "text", Text: strings.ToValidUTF8(string(b), "\uFFFD")})
	}
}

// whole returns b behind what waited, and has a character at its end that is not
// complete wait.
func (p *Publisher) whole(stream string, b []byte) (whole []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole, p.halves[stream] = text.Whole(p.halves[stream], b)
	return whole
}

// Output publishes a piece of the tool's output, text in as many events as it takes.
func (p *Publisher) Output(stream string, c api.Content) {
	if !p.on() {
		return
	}
	for part, rest := c, ""; ; part = (api.Content{Type: "text", Text: rest}) {
		if part.Type == "text" {
			part.Text, rest = split(part.Text, maxEventBytes-len(part.Extra))
		}
		if p.tells(part.Bytes()) {
			p.Publish(api.Event{Kind: api.EventOutput, Stream: stream, Content: cutContent(part)})
		}
		if rest == "" {
			return
		}
	}
}

// spent counts so many bytes of output as missed where there is no room for more.
func (p *Publisher) spent(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left > 0 {
		return false
	}
	p.missed += (n + maxEventBytes - 1) / maxEventBytes
	return true
}

// tells says whether n more bytes of output are to be published. Those that are
// not count as missed, and cost nothing.
func (p *Publisher) tells(n int) bool {
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

// Note publishes what the tool says of its work, unless it has said too much of
// late.
func (p *Publisher) Note(e api.Event) {
	if !p.on() {
		return
	}
	e.Message = cutText(e.Message)
	p.mu.Lock()
	tells := p.notes.take(leastOutputEvent+len(e.Message)+logBytes(e), time.Now())
	if !tells {
		p.missed++
	}
	p.mu.Unlock()
	if tells {
		p.Publish(e)
	}
}

// Publish sends an event. What a tool does while it starts comes behind the word
// that it has, or that it never will.
func (p *Publisher) Publish(e api.Event) {
	if !p.on() {
		return
	}
	e.Message = cutText(e.Message)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.started || e.Kind == api.EventQueued:
		p.send(e)
	case e.Kind == api.EventStarted:
		p.send(e)
		p.begin()
	case e.Kind == api.EventOutput || e.Kind == api.EventOverran:
		p.hold(e)
	default:
		p.begin()
		p.send(e)
	}
}

func (p *Publisher) hold(e api.Event) {
	n := len(p.early)
	if n > 0 && join(&p.early[n-1], e) {
		return
	}
	if n == maxEarly {
		p.missed++
		return
	}
	p.early = append(p.early, e)
}

// join adds text of the same stream to an event that nobody has been sent yet.
func join(e *api.Event, more api.Event) bool {
	if e.Kind != api.EventOutput || more.Kind != api.EventOutput || e.Stream != more.Stream || more.Content.Block || len(e.Content.Text)+len(more.Content.Text) > maxEventBytes {
		return false
	}
	e.Content = &api.Content{Type: "text", Text: e.Content.Text + more.Content.Text}
	return true
}

func (p *Publisher) begin() {
	p.started = true
	for _, e := range p.early {
		p.send(e)
	}
	p.early = nil
}

func (p *Publisher) send(e api.Event) {
	e.Time, e.CallID, e.Tool, e.Missed = time.Now().UTC(), p.callID, p.tool, p.missed
	select {
	case p.to <- e:
		p.missed = 0
	default:
		p.missed++
	}
}

func logBytes(e api.Event) int {
	if e.Log == nil {
		return 0
	}
	return len(e.Log.Data) + len(e.Log.Meta)
}
