package fleetops

import (
	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/serve/telemetry"
)

// Tracer sends a worker's spans where the OTEL_* environment says.
type Tracer struct {
	telemetry *telemetry.Telemetry
	worker    string
}

var _ worker.Tracer = (*Tracer)(nil)

// NewTracer makes that of a worker of this version, which has to be closed.
func NewTracer(name, version string, logger hclog.Logger) (*Tracer, error) {
	made, err := telemetry.New(telemetry.Config{
		Known: func(string) bool { return true }, Load: func() telemetry.Load { return telemetry.Load{JournalBytes: -1} },
		Version: version, Export: telemetry.Export{NoMetrics: true}, Logger: logger.Named("telemetry"),
	})
	return &Tracer{made, name}, err
}

// Close sends what is left.
func (t *Tracer) Close() { t.telemetry.Close() }

// Begin implements worker.Tracer.
func (t *Tracer) Begin(parent string) string { return t.telemetry.Trace(parent) }

// Ended implements worker.Tracer.
func (t *Tracer) Ended(c worker.Traced) {
	t.telemetry.Worked(telemetry.Work{
		Worker: t.worker, Parent: c.Parent, Own: c.Own, Offered: c.Offered, Told: c.Told, Over: c.Over, Taken: c.Taken, Result: c.Result,
	})
}
