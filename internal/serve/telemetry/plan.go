package telemetry

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/tools/config"
)

// Export is where telemetry is sent over OTLP. Empty fields are taken from
// the OTEL_* environment; without an endpoint in either nothing is sent.
// Certificates and compression are for the environment alone.
type Export struct {
	// Endpoint is a collector's URL, such as http://127.0.0.1:4318.
	Endpoint string
	// Protocol is ProtocolGRPC or ProtocolHTTP; empty, also in the environment,
	// is ProtocolHTTP.
	Protocol string
	// Headers go with every request. They are secret: with any, a collector is
	// spoken with over TLS, or on this machine.
	Headers map[string]string
	// NoTraces and NoMetrics leave one of the two out.
	NoTraces, NoMetrics bool
	// Audit sends audit records, too: see AuditLogs.
	Audit bool
	// Interval is that of metrics; 0 is 60 s. Timeout bounds each request; 0 is
	// 10 s.
	Interval, Timeout time.Duration
}

// Protocols of OTLP, by the names that OTEL_EXPORTER_OTLP_PROTOCOL has.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http/protobuf"
)

// signalPlan is what becomes of traces, metrics or logs.
type signalPlan struct {
	on       bool
	protocol string
	// url is where to; empty leaves it to the exporter, which reads the
	// environment.
	url string
}

// exportPlan is pure: getenv is the only thing it asks.
type exportPlan struct{ traces, metrics, audit signalPlan }

func (p exportPlan) on() bool { return p.traces.on || p.metrics.on }

func planExport(e Export, getenv func(string) string) (plan exportPlan, err error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return exportPlan{}, nil
	}
	if !e.NoTraces {
		if plan.traces, err = planSignal(e, "TRACES", getenv); err != nil {
			return exportPlan{}, err
		}
	}
	if !e.NoMetrics {
		if plan.metrics, err = planSignal(e, "METRICS", getenv); err != nil {
			return exportPlan{}, err
		}
	}
	if e.Audit {
		if plan.audit, err = planSignal(e, "LOGS", getenv); err == nil && !plan.audit.on && getenv("OTEL_LOGS_EXPORTER") == "" {
			err = errNoCollector
		}
	}
	return plan, err
}

func planSignal(e Export, signal string, getenv func(string) string) (plan signalPlan, err error) {
	if chosen := getenv("OTEL_" + signal + "_EXPORTER"); chosen != "" && !slices.Contains(strings.Split(chosen, ","), "otlp") {
		return signalPlan{}, nil
	}
	own := func(what string) (name, value string) {
		name = "OTEL_EXPORTER_OTLP_" + signal + "_" + what
		if value = getenv(name); value == "" {
			name = "OTEL_EXPORTER_OTLP_" + what
			value = getenv(name)
		}
		return name, value
	}
	if _, endpoint := own("ENDPOINT"); e.Endpoint == "" && endpoint == "" {
		return signalPlan{}, nil
	}
	if err := checkEndpoint(e, own); err != nil {
		return signalPlan{}, fmt.Errorf("cannot send telemetry: %w", err)
	}
	name, protocol := "telemetry.otlp.protocol", e.Protocol
	if protocol == "" {
		name, protocol = own("PROTOCOL")
	}
	protocol = cmp.Or(protocol, ProtocolHTTP)
	if protocol != ProtocolGRPC && protocol != ProtocolHTTP {
		return signalPlan{}, fmt.Errorf("cannot send telemetry: %s is %q: give %s or %s", name, protocol, ProtocolGRPC, ProtocolHTTP)
	}
	return signalPlan{on: true, protocol: protocol, url: signalURL(e.Endpoint, protocol, signal)}, nil
}

// signalURL adds what the specification of OTLP/HTTP adds to a base URL.
func signalURL(endpoint, protocol, signal string) string {
	if endpoint == "" || protocol == ProtocolGRPC {
		return endpoint
	}
	return strings.TrimSuffix(endpoint, "/") + "/v1/" + strings.ToLower(signal)
}

// checkEndpoint judges where the exporter will send to: it would take its default
// for what it cannot read, and secrets wherever it is told.
func checkEndpoint(e Export, own func(what string) (name, value string)) error {
	name, endpoint := "telemetry.otlp.endpoint", e.Endpoint
	if endpoint == "" {
		name, endpoint = own("ENDPOINT")
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%s is not a URL of a collector: write http://HOST:PORT", name)
	}
	if insecure, value := own("INSECURE"); e.Endpoint == "" && strings.EqualFold(value, "true") {
		name, u.Scheme = insecure, "http" // as the exporter takes it, whatever the URL says
	}
	if len(e.Headers) > 0 && config.Unencrypted(u.String()) {
		return fmt.Errorf("the secret headers of telemetry.otlp.headers would go unencrypted through the network by %s: write https:// in the endpoint, or take them out", name)
	}
	return nil
}
