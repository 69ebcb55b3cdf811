package telemetry

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/toolhost/toolhost/internal/text"
)

// closeLimit bounds how long the end of the host waits for a collector.
const closeLimit = 3 * time.Second

// exports sends telemetry from goroutines of its own; nothing waits for it.
type exports struct {
	traces *traces                  // nil where none are sent
	meter  *sdkmetric.MeterProvider // nil where no metrics are sent
	cut    context.CancelFunc       // ends exports that are under way
}

// newExports gives nil where nothing is to be sent.
func newExports(c Config, m *metrics, all prometheus.Gatherer) (*exports, error) {
	plan, err := planExport(c.Export, os.Getenv)
	if err != nil || !plan.on() {
		return nil, err
	}
	silence(c.Logger)
	of, err := newResource(c.Version)
	if err != nil {
		return nil, err
	}
	x := &exports{}
	life, cut := context.WithCancel(context.Background())
	x.cut = cut
	guard := func(signal string) *guard {
		g := &guard{life: life, logger: c.Logger, signal: signal}
		g.failed = func() { m.exportErrors.WithLabelValues(signal).Inc() }
		return g
	}
	if plan.traces.on {
		exporter, err := newSpanExporter(plan.traces, c.Export)
		if err != nil {
			x.close()
			return nil, err
		}
		x.traces = newTraces(&spanGuard{exporter, guard("traces")}, of, c.Version, m.lostCalls.WithLabelValues())
	}
	if plan.metrics.on {
		exporter, err := newMetricExporter(plan.metrics, c.Export)
		if err != nil {
			x.close()
			return nil, err
		}
		x.meter = newMeter(&metricGuard{exporter, guard("metrics")}, of, c.Export, all)
	}
	return x, nil
}

// newResource is who sends. What the environment says of it counts most.
func newResource(version string) (*resource.Resource, error) {
	of, err := resource.New(context.Background(),
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("toolhost"), semconv.ServiceVersion(version)),
		resource.WithFromEnv(),
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, err
	}
	return of, nil
}

func newMeter(exporter sdkmetric.Exporter, of *resource.Resource, e Export, all prometheus.Gatherer) *sdkmetric.MeterProvider {
	options := []sdkmetric.PeriodicReaderOption{
		sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(all))),
	}
	if e.Interval > 0 {
		options = append(options, sdkmetric.WithInterval(e.Interval))
	}
	return sdkmetric.NewMeterProvider(sdkmetric.WithResource(of), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, options...)))
}

// close sends what waits, and gives up on it after closeLimit.
func (x *exports) close() {
	defer x.cut()
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	defer context.AfterFunc(ctx, x.cut)() // whatever hangs fails now
	var all sync.WaitGroup
	if x.traces != nil {
		all.Go(x.traces.close)
	}
	if x.meter != nil {
		all.Go(func() { _ = x.meter.Shutdown(ctx) })
	}
	all.Wait()
}

// silence has the SDK's own messages, which it keeps for the whole process, go
// where ours do. Their arguments are left out: among them is what it cannot read
// of the environment, such as a header.
func silence(logger hclog.Logger) {
	otel.SetLogger(funcr.New(func(prefix, args string) {
		logger.Debug("opentelemetry: "+prefix, "detail", text.Bytes(args, maxErrorBytes))
	}, funcr.Options{
		RenderArgsHook: func([]any) []any { return nil },
	}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Debug("opentelemetry", "error", text.Bytes(err.Error(), maxErrorBytes)) }))
}

// tellEvery is how often an unreachable collector is reported.
const tellEvery = time.Minute

// guard stands before an exporter: its failures are counted, and reported now
// and then, and it ends with life.
type guard struct {
	life   context.Context
	logger hclog.Logger
	signal string
	failed func()

	mu     sync.Mutex
	logged time.Time
	since  int // failures that were not told of
}

// try runs one export.
func (g *guard) try(ctx context.Context, export func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.life, cancel)()
	err := export(ctx)
	if err == nil {
		return
	}
	if n, taken := rejected(err); taken && n == 0 {
		g.logger.Debug("the collector has taken telemetry with a warning", "signal", g.signal, "warning", text.Bytes(err.Error(), maxErrorBytes))
		return
	}
	g.failed()
	g.tell(err)
}

func (g *guard) tell(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since++
	if now := time.Now(); g.logged.IsZero() || now.Sub(g.logged) >= tellEvery {
		g.logger.Warn("telemetry cannot be sent, and is lost", "signal", g.signal, "failures", g.since, "error", text.Bytes(plain(err).Error(), maxErrorBytes))
		g.logged, g.since = now, 0
	}
}

// maxErrorBytes bounds what a collector can write into the log.
const maxErrorBytes = 300

type spanGuard struct {
	sdktrace.SpanExporter
	*guard
}

// ExportSpans implements sdktrace.SpanExporter.
func (g *spanGuard) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	g.try(ctx, func(ctx context.Context) error { return g.SpanExporter.ExportSpans(ctx, spans) })
	return nil
}

type metricGuard struct {
	sdkmetric.Exporter
	*guard
}

// Export implements sdkmetric.Exporter.
func (g *metricGuard) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	g.try(ctx, func(ctx context.Context) error { return g.Exporter.Export(ctx, data) })
	return nil
}
