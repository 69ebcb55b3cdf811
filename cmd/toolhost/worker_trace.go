//go:build !nofleet

package main

import (
	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/serve/telemetry"
)

// workerTracer sends a worker's spans where the OTEL_* environment says.
type workerTracer struct {
	telemetry *telemetry.Telemetry
	worker    string
}

var _ worker.Tracer = (*workerTracer)(nil)

func newWorkerTracer(name string, logger hclog.Logger) (*workerTracer, error) {
	made, err := telemetry.New(telemetry.Config{
		Known: func(string) bool { return true }, Load: func() telemetry.Load { return telemetry.Load{JournalBytes: -1} },
		Version: readVersion().Version, Export: telemetry.Export{NoMetrics: true}, Logger: logger.Named("telemetry"),
	})
	return &workerTracer{made, name}, err
}

// Begin implements worker.Tracer.
func (t *workerTracer) Begin(parent string) string { return t.telemetry.Trace(parent) }

// Ended implements worker.Tracer.
func (t *workerTracer) Ended(c worker.Traced) {
	t.telemetry.Worked(telemetry.Work{
		Worker: t.worker, Parent: c.Parent, Own: c.Own, Offered: c.Offered, Told: c.Told, Over: c.Over, Taken: c.Taken, Result: c.Result,
	})
}
