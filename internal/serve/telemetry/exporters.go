package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The exporters connect when they have something to send. Options that are not
// given are theirs to read from the environment.

func newSpanExporter(p signalPlan, e Export) (sdktrace.SpanExporter, error) {
	ctx := context.Background()
	if p.protocol == ProtocolGRPC {
		return otlptracegrpc.New(ctx, options(p, e, otlptracegrpc.WithEndpointURL, otlptracegrpc.WithHeaders, otlptracegrpc.WithTimeout)...)
	}
	return otlptracehttp.New(ctx, append(options(p, e, otlptracehttp.WithEndpointURL, otlptracehttp.WithHeaders, otlptracehttp.WithTimeout), otlptracehttp.WithProxy(proxy))...)
}

func newMetricExporter(p signalPlan, e Export) (sdkmetric.Exporter, error) {
	ctx := context.Background()
	if p.protocol == ProtocolGRPC {
		return otlpmetricgrpc.New(ctx, options(p, e, otlpmetricgrpc.WithEndpointURL, otlpmetricgrpc.WithHeaders, otlpmetricgrpc.WithTimeout)...)
	}
	return otlpmetrichttp.New(ctx, append(options(p, e, otlpmetrichttp.WithEndpointURL, otlpmetrichttp.WithHeaders, otlpmetrichttp.WithTimeout), otlpmetrichttp.WithProxy(proxy))...)
}

// options are those of any of the exporters; each exporter has its own type.
func options[O any](p signalPlan, e Export, url func(string) O, headers func(map[string]string) O, timeout func(time.Duration) O) (list []O) {
	if p.url != "" {
		list = append(list, url(p.url))
	}
	if len(e.Headers) > 0 {
		list = append(list, headers(e.Headers))
	}
	if e.Timeout > 0 {
		list = append(list, timeout(e.Timeout))
	}
	return list
}
