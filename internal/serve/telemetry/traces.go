package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolhost/toolhost/api"
)

// maxWaiting bounds the calls that wait to become spans; more have no trace.
const maxWaiting = 1024

// traces makes spans of calls, once these are over.
type traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	lost     prometheus.Counter
	waiting  chan traced
	stop     chan struct{} // closed by close
	over     chan struct{} // closed when nothing is made any more
}

// traced is what a trace shows of a call: a bounded copy, since the result may
// be large.
type traced struct {
	name        string
	kind        trace.SpanKind
	parent, own string // trace contexts
	asked, over time.Time
	status      api.Status
	phases      []api.Phase
	attributes  []attribute.KeyValue
	kill        []attribute.KeyValue
}

func newTraces(exporter sdktrace.SpanExporter, of *resource.Resource, version string, lost prometheus.Counter) *traces {
	// It blocks where spans come too fast, but only the goroutine here: what then
	// has no room is counted.
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(of), sdktrace.WithBatcher(exporter, sdktrace.WithBlocking()), sdktrace.WithIDGenerator(ids{}))
	t := &traces{
		provider: provider, tracer: provider.Tracer("github.com/toolhost/toolhost", trace.WithInstrumentationVersion(version)),
		lost: lost, waiting: make(chan traced, maxWaiting), stop: make(chan struct{}), over: make(chan struct{}),
	}
	go t.run()
	return t
}

// take does not wait.
func (t *traces) take(c traced) {
	select {
	case t.waiting <- c:
	default:
		t.lost.Inc()
	}
}

func (t *traces) run() {
	defer close(t.over)
	for {
		select {
		case c := <-t.waiting:
			t.make(c)
		case <-t.stop:
			for {
				select {
				case c := <-t.waiting:
					t.make(c)
				default:
					return
				}
			}
		}
	}
}

// close makes spans of what waits, and sends all. It ends soon after exports
// have begun to fail.
func (t *traces) close() {
	close(t.stop)
	<-t.over
	_ = t.provider.Shutdown(context.Background())
}

// make makes the spans of one call, at the times that were measured.
func (t *traces) make(c traced) {
	_, span := t.tracer.Start(below(c.parent, c.own), c.name, trace.WithSpanKind(c.kind), trace.WithTimestamp(c.asked), trace.WithAttributes(c.attributes...))
	ctx := trace.ContextWithSpan(context.Background(), span)
	for _, p := range c.phases {
		if p.Name == api.PhaseKill {
			t.phase(ctx, c.asked, p, c.kill...)
		} else {
			t.phase(ctx, c.asked, p)
		}
	}
	if c.status != api.StatusOK {
		span.SetStatus(codes.Error, string(c.status))
	}
	span.End(trace.WithTimestamp(sameClock(c.asked, c.over)))
}

// phase makes a child span.
func (t *traces) phase(ctx context.Context, zero time.Time, p api.Phase, attributes ...attribute.KeyValue) {
	_, span := t.tracer.Start(ctx, p.Name, trace.WithTimestamp(sameClock(zero, p.From)), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(sameClock(zero, p.To)))
}

// sameClock is a moment on the wall clock as it was at zero, so that spans stay
// inside of one another when that clock is set.
func sameClock(zero, at time.Time) time.Time { return zero.Add(max(at.Sub(zero), 0)) }
