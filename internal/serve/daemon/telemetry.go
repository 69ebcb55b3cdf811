package daemon

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/telemetry"
)

func (d *daemon) openTelemetry() error {
	export, err := exportOf(d.options)
	if err != nil {
		return err
	}
	d.telemetry, err = telemetry.New(telemetry.Config{
		Known: func(name string) bool { return d.tools.offers(name) },
		Tools: d.toolNames, Load: d.load, Version: d.options.Version, Export: export, Logger: d.logger.Named("telemetry"),
	})
	return err
}

// exportOf reads the secrets that headers need.
func exportOf(o Options) (telemetry.Export, error) {
	otlp := o.Loaded.Telemetry.OTLP
	export := telemetry.Export(otlp)
	export.Headers = map[string]string{}
	for header, name := range otlp.Headers {
		for _, secret := range o.Loaded.Secrets {
			if secret.Name != name {
				continue
			}
			value, err := secret.Read(o.Machine)
			if err != nil {
				return telemetry.Export{}, err
			}
			if strings.ContainsAny(value, "\r\n") {
				return telemetry.Export{}, fmt.Errorf("cannot use secret %s as the header %s: it has several lines", name, header)
			}
			export.Headers[header] = value
		}
	}
	return export, nil
}

// toolNames returns the names of all tools that are known without a Describe.
func (d *daemon) toolNames() []string {
	if !d.opened.Load() {
		return nil
	}
	return d.tools.names()
}

// load returns the daemon's figures for a scrape. It may run before all of them
// exist.
func (d *daemon) load() telemetry.Load {
	if !d.opened.Load() {
		return telemetry.Load{JournalBytes: -1}
	}
	h := d.host.Host()
	running, waiting := d.underWay()
	load := telemetry.Load{
		Running: running, Waiting: waiting, Kept: h.Kept, Prestarted: h.Prestarted, Sandboxes: h.Sandboxes, Stuck: h.Stuck, Cgroup: h.Cgroup, CgroupDir: h.Place, JournalBytes: d.journalBytes(),
	}
	if d.fleet != nil {
		load.Workers, load.Refused = d.fleet.Workers().Workers, d.fleet.Refused()
	}
	for _, t := range d.turns.Active() {
		load.Turns++
		load.Pending += len(t.PendingInteractions)
	}
	return load
}

// journalBytes is negative without a journal.
func (d *daemon) journalBytes() (bytes int64) {
	if d.journal == nil {
		return -1
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(filepath.Join(d.journal.Dir(), journal.DatabaseName+suffix)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// metrics serves scrapes. The API bounds how many run at once, since it has errors of its
// own form.
func (d *daemon) metrics() http.Handler {
	return promhttp.HandlerFor(d.telemetry.Metrics(), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}
