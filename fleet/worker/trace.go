package worker

import (
	"time"

	"github.com/toolhost/toolhost/api"
)

// Tracer makes spans of calls. Its methods must not wait, and are called from any goroutine.
type Tracer interface {
	// Begin is given the W3C trace context that a call came with, which its caller has
	// proven with the offer, and returns the call's own here, which the tool is told. Either
	// may be empty. The call may be given up before it starts.
	Begin(parent string) (own string)
	// Ended is given a call that has started and is over.
	Ended(Traced)
}

// Traced are the moments of a call, by this machine's clock, beside those of its result.
type Traced struct {
	Parent, Own string
	// Offered: it was offered; Told: it was to start; Over: its result was there; Taken: the
	// caller has it, or is not waited for any more.
	Offered, Told, Over, Taken time.Time
	Result                     *api.Result
}

// begin gives what runs here a span of its own, which its tool is told.
func (p *planned) begin(t Tracer) {
	if t != nil {
		p.parent = api.TraceParent(p.request.Meta)
		p.own = t.Begin(p.parent)
		p.request.Meta = api.WithTraceParent(p.request.Meta, p.own)
	}
}

// traced makes a call, and spans of it.
func (w *Worker) traced(a *attempt, run func() (*api.Result, time.Time)) {
	tracer := w.config.Tracer
	if tracer == nil {
		run()
		return
	}
	t := Traced{Parent: a.parent, Own: a.own, Offered: a.at, Told: time.Now()}
	t.Result, t.Over = run()
	t.Taken = time.Now()
	tracer.Ended(t)
}
