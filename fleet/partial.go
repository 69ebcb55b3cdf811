package fleet

import (
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// maxPartialBytes bounds each stream of what is kept for a call that may be lost.
const maxPartialBytes = 1 << 20

// partial is what has arrived of a call's output.
type partial struct {
	content        []api.Content
	held           int
	dropped        int64
	stdout, stderr api.StreamOutput
	missed         int
}

func (p *partial) take(e api.Event) {
	p.missed += e.Missed
	if e.Kind != api.EventOutput || e.Content == nil {
		return
	}
	switch e.Stream {
	case "stdout":
		grow(&p.stdout, e.Content.Text)
	case "stderr":
		grow(&p.stderr, e.Content.Text)
	default:
		if n := e.Content.Bytes(); p.held+n <= maxPartialBytes {
			p.content, p.held = append(p.content, *e.Content), p.held+n
		} else {
			p.dropped += int64(n)
		}
	}
}

func grow(s *api.StreamOutput, text string) {
	s.SeenBytes += int64(len(text))
	if room := maxPartialBytes - len(s.Head); s.DroppedBytes == 0 && len(text) <= room {
		s.Head += text
		s.KeptBytes += int64(len(text))
		return
	}
	s.DroppedBytes += int64(len(text))
}

// fill puts it into a result.
func (p *partial) fill(r *api.Result) {
	if len(p.content) > 0 {
		r.Content = p.content
	}
	r.Output.Stdout, r.Output.Stderr = p.stdout, p.stderr
	r.Output.Content = api.ContentOutput{SeenBytes: int64(p.held) + p.dropped, KeptBytes: int64(p.held), DroppedBytes: p.dropped}
	if p.missed > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d events came too fast to be sent, and output in them is missing", p.missed))
	}
}

// relay passes events on as far as their reader has room.
type relay struct {
	to       chan<- api.Event
	id, tool string
	missed   int
	queued   bool
	silent   bool // no output is wanted in events
}

func relayOf(r supervisor.Request) relay {
	return relay{to: r.Events, id: r.ID, tool: r.ToolName(), silent: r.EventOutputBytes < 0}
}

// begin sends the first event, unless it was sent.
func (r *relay) begin() {
	if !r.queued {
		r.send(api.Event{Kind: api.EventQueued, CallID: r.id, Tool: r.tool, Time: time.Now()})
	}
}

func (r *relay) send(e api.Event) {
	if e.Kind != api.EventQueued {
		r.begin()
	}
	r.queued = true
	if r.to == nil || r.silent && e.Kind == api.EventOutput {
		return
	}
	e.Missed += r.missed
	select {
	case r.to <- e:
		r.missed = 0
	default:
		r.missed = e.Missed + 1
	}
}

// end sends the last event.
func (r *relay) end(result *api.Result) {
	e := api.Event{
		Kind: api.EventFailed, CallID: r.id, Tool: r.tool, Time: time.Now(),
		Status: result.Status, ElapsedMs: result.Timing.ElapsedMs, Display: result.Display(),
	}
	if result.OK() {
		e.Kind = api.EventFinished
	}
	r.send(e)
}
