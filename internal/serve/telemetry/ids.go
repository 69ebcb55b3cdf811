package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// ids gives the span of a call, which is made when the call is over, the ids that others
// were told when it began; other spans have random ones.
type ids struct{}

var _ sdktrace.IDGenerator = ids{}

// chosen is the key of the ids that a context asks for.
type chosen struct{}

// NewIDs implements sdktrace.IDGenerator.
func (g ids) NewIDs(ctx context.Context) (of trace.TraceID, span trace.SpanID) {
	if own, ok := ctx.Value(chosen{}).(trace.SpanContext); ok {
		return own.TraceID(), own.SpanID()
	}
	for !of.IsValid() {
		binary.NativeEndian.PutUint64(of[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(of[8:], rand.Uint64())
	}
	return of, g.NewSpanID(ctx, of)
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (span trace.SpanID) {
	if own, ok := ctx.Value(chosen{}).(trace.SpanContext); ok {
		return own.SpanID()
	}
	for !span.IsValid() {
		binary.NativeEndian.PutUint64(span[:], rand.Uint64())
	}
	return span
}

// below is a context whose next span is below a parent, and has the ids that were chosen
// for it, if any were.
func below(parent, own string) context.Context {
	ctx := extract(parent)
	if c := trace.SpanContextFromContext(extract(own)); c.IsValid() {
		ctx = context.WithValue(ctx, chosen{}, c)
	}
	return ctx
}

func extract(traceParent string) context.Context {
	return propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceParent})
}

// begin chooses the ids of a call's span, and whether it is sampled.
func (t *traces) begin(parent string) (own string) {
	ctx, _ := t.tracer.Start(extract(parent), "execute_tool") // the one that is sent is made at the call's end
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}
