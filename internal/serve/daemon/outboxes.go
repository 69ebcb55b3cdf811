package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/toolhost/toolhost/internal/serve/audit"
	"github.com/toolhost/toolhost/internal/serve/telemetry"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// openOutboxes sends audit records to where the configuration says.
func (d *daemon) openOutboxes() error {
	export, err := exportOf(d.options)
	if err != nil {
		return err
	}
	logs, err := telemetry.NewAuditLogs(export, d.options.Version, d.logger.Named("telemetry"))
	if err != nil {
		return err
	}
	if logs != nil {
		d.sendAudit("otlp", logs)
	}
	settings := d.options.Loaded.Telemetry.Syslog
	if settings.Address == "" {
		return nil
	}
	trust, err := receiverTLS(settings)
	if err != nil {
		return err
	}
	receiver, err := audit.NewSyslog(settings.Address, trust)
	if err != nil {
		return err
	}
	d.sendAudit("syslog", receiver)
	return nil
}

func (d *daemon) sendAudit(name string, s audit.Sender) {
	d.trail.outboxes = append(d.trail.outboxes, audit.NewOutbox(name, s, d.logger.Named("audit"), func(n int) { d.telemetry.AuditLost(name, n) }))
}

func receiverTLS(settings config.Syslog) (*tls.Config, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if settings.CA == "" {
		return trust, nil
	}
	raw, err := os.ReadFile(settings.CA)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates of telemetry.syslog.ca: %w", err)
	}
	trust.RootCAs = x509.NewCertPool()
	if !trust.RootCAs.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("telemetry.syslog.ca %s has no certificate in PEM", settings.CA)
	}
	return trust, nil
}
