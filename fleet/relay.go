package fleet

import (
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	"github.com/toolhost/toolhost/supervisor"
)

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

// maxType is longer than the type of any content.
const maxType = 64

// credible says whether an event may be a worker's. What its content holds beside its type is
// counted, and with what was left out bounds what is kept of a call.
func credible(e api.Event) bool {
	c := e.Content
	return slices.Contains(portable.WorkersEvents, e.Kind) && e.Missed >= 0 && (c == nil || c.LeftOutBytes >= 0 && len(c.Type) <= maxType)
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
