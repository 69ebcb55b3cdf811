package telemetry

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolhost/toolhost/api"
)

// Work is a call that a worker of a fleet has made, by the worker's clock.
type Work struct {
	Worker string
	// Parent is the trace context that the call came with, Own the one that Trace gave.
	Parent, Own string
	// Offered: it was offered; Told: the worker was told to start it; Taken: its caller has
	// the result, or is not waited for any more.
	Offered, Told, Over, Taken time.Time
	Result                     *api.Result
}

// Trace begins the span of a call, below the trace context that the call came with, and
// gives its own; without traces that is the same one. It does not wait.
func (t *Telemetry) Trace(parent string) (own string) {
	if traces := t.traces(); traces != nil {
		return traces.begin(parent)
	}
	return parent
}

// traces is nil where no spans are sent.
func (t *Telemetry) traces() *traces {
	if t.export == nil {
		return nil
	}
	return t.export.traces
}

// Worked makes spans of a worker's call. It neither waits nor keeps a pointer.
func (t *Telemetry) Worked(w Work) {
	traces := t.traces()
	if traces == nil {
		return
	}
	tool := t.tools.of(w.Result.Tool)
	c := newTraced(&ended{result: w.Result, tool: tool, asked: w.Offered, over: w.Taken, parent: w.Parent, own: w.Own})
	c.name, c.kind = "worker "+tool, trace.SpanKindServer
	c.attributes = append(details(w.Result),
		attribute.String(toolName, tool), attribute.String("toolhost.worker", printable(w.Worker)), attribute.String("toolhost.status", statuses.of(string(w.Result.Status))))
	c.phases = append(c.phases, api.Phase{Name: "offer", From: w.Offered, To: w.Told}, api.Phase{Name: "result", From: w.Over, To: w.Taken})
	traces.take(c)
}
