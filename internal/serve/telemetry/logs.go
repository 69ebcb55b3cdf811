package telemetry

import (
	"context"
	"errors"
	"os"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/audit"
)

// AuditLogs sends audit records as OTLP logs. One goroutine may use it.
type AuditLogs struct {
	exporter sdklog.Exporter
	logger   log.Logger
	made     *collected
}

// NewAuditLogs gives nil where none are to be sent. To be asked for them without an
// endpoint is an error.
func NewAuditLogs(e Export, version string, logger hclog.Logger) (*AuditLogs, error) {
	plan, err := planExport(e, os.Getenv)
	if err != nil || !plan.audit.on {
		return nil, err
	}
	silence(logger)
	of, err := newResource(version)
	if err != nil {
		return nil, err
	}
	l := &AuditLogs{made: &collected{}}
	if l.exporter, err = newLogExporter(plan.audit, e); err != nil {
		return nil, err
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(of), sdklog.WithProcessor(l.made))
	l.logger = provider.Logger("toolhost/audit", log.WithInstrumentationVersion(version))
	return l, nil
}

func newLogExporter(p signalPlan, e Export) (sdklog.Exporter, error) {
	ctx := context.Background()
	if p.protocol == ProtocolGRPC {
		return otlploggrpc.New(ctx, options(p, e, otlploggrpc.WithEndpointURL, otlploggrpc.WithHeaders, otlploggrpc.WithTimeout)...)
	}
	return otlploghttp.New(ctx, append(options(p, e, otlploghttp.WithEndpointURL, otlploghttp.WithHeaders, otlploghttp.WithTimeout), otlploghttp.WithProxy(proxy))...)
}

// Send sends all of the records, or none. What the collector says of those that it has is an
// *audit.Rejected.
func (l *AuditLogs) Send(ctx context.Context, records []journal.Audit) (sent int, err error) {
	l.made.records = nil
	for i := range records {
		l.logger.Emit(ctx, logOf(records[i]))
	}
	if err := l.exporter.Export(ctx, l.made.records); err != nil {
		if n, taken := rejected(err); taken {
			return len(records), &audit.Rejected{Records: int(max(0, min(n, int64(len(records))))), Why: err}
		}
		return 0, plain(err)
	}
	return len(records), nil
}

// Close closes the connection.
func (l *AuditLogs) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = l.exporter.Shutdown(ctx)
}

// logOf has the words of the record as its body, and each field as an attribute. A byte outside
// UTF-8 is replaced as in the journal's JSON: OTLP takes nothing of a batch with one.
func logOf(a journal.Audit) (r log.Record) {
	for _, s := range []*string{&a.Who, &a.Action, &a.What, &a.Outcome} {
		*s = string([]rune(*s))
	}
	r.SetTimestamp(a.Time)
	r.SetEventName("toolhost.audit." + a.Action)
	r.SetSeverity(log.SeverityInfo)
	if a.Refused() {
		r.SetSeverity(log.SeverityWarn)
	}
	r.SetSeverityText(r.Severity().String())
	r.SetBody(attribute.StringValue(a.Words()))
	r.AddAttributes(attribute.Int64("toolhost.audit.seq", a.Seq), attribute.String("toolhost.audit.who", a.Who), attribute.String("toolhost.audit.action", a.Action))
	for key, value := range map[string]string{"what": a.What, "outcome": a.Outcome, "hash": a.Hash} {
		if value != "" {
			r.AddAttributes(attribute.String("toolhost.audit."+key, value))
		}
	}
	return r
}

// collected is a processor that keeps what the SDK makes, until it is sent: the queue
// is the sender's.
type collected struct{ records []sdklog.Record }

var _ sdklog.Processor = (*collected)(nil)

// OnEmit implements sdklog.Processor.
func (c *collected) OnEmit(_ context.Context, r *sdklog.Record) error {
	c.records = append(c.records, r.Clone())
	return nil
}

// Enabled implements sdklog.Processor.
func (c *collected) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

// Shutdown implements sdklog.Processor.
func (c *collected) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdklog.Processor.
func (c *collected) ForceFlush(context.Context) error { return nil }

var errNoCollector = errors.New("cannot send audit records: telemetry.otlp.audit asks for it, and there is no endpoint of a collector: set telemetry.otlp.endpoint")
