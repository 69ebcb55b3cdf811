package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Telemetry are the settings of what the daemon sends to others. What is
// scraped from it needs none.
type Telemetry struct {
	OTLP   OTLP
	Syslog Syslog
}

// Syslog is where audit records go, as RFC 5424; without an address nowhere.
type Syslog struct {
	// Address begins with unix://, udp://, tcp:// or tls://. CA is a file with the
	// certificates that a receiver of the last may have been signed by; empty is the
	// system's.
	Address, CA string
}

// OTLP is where traces and metrics go. Zero fields are taken from the OTEL_*
// environment.
type OTLP struct {
	// Endpoint is the URL of a collector. Protocol is grpc or http/protobuf.
	Endpoint, Protocol string
	// Headers are names of secrets, by the header whose value they hold.
	Headers map[string]string
	// NoTraces and NoMetrics leave one of the two out; Audit sends audit records, too.
	NoTraces, NoMetrics bool
	Audit               bool
	Interval, Timeout   time.Duration
}

var telemetryKeys = []*key{
	{name: "otlp", keys: otlpKeys, doc: "sending traces and metrics over OTLP"},
	{name: "syslog", keys: syslogKeys, doc: "sending audit records by syslog (RFC 5424)"},
}

var syslogKeys = []*key{
	field(key{name: "address", kind: syslogKind, std: "(none: nothing is sent)", doc: "the receiver: `unix:///dev/log`, `udp://HOST:514`, `tcp://HOST:601` or `tls://HOST:6514`"},
		func(l *Loaded) *string { return &l.Telemetry.Syslog.Address }),
	field(key{name: "ca", kind: pathKind("path", pathFile), std: "(the system's)", doc: "PEM file with the certificate authorities to trust for a `tls://` receiver"},
		func(l *Loaded) *string { return &l.Telemetry.Syslog.CA }),
}

// syslogKind is the address of a receiver.
var syslogKind = scalar("address of a syslog receiver", `^(unix:///.+|(udp|tcp|tls)://[^/?#@]+:[0-9]+)$`, func(s string) (any, string) {
	u, err := url.Parse(s)
	if err == nil && u.Scheme == "unix" && u.Host == "" && len(u.Path) > 1 && u.User == nil {
		return s, ""
	}
	if err != nil || !slices.Contains([]string{"udp", "tcp", "tls"}, u.Scheme) || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return nil, "is not an address of a syslog receiver: write unix:///dev/log, udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT"
	}
	return s, ""
})

var otlpKeys = []*key{
	field(key{name: "endpoint", kind: endpointKind, std: "($OTEL_EXPORTER_OTLP_ENDPOINT; without one nothing is sent)", doc: "URL of the collector, such as `http://127.0.0.1:4318`; over HTTP, `/v1/traces` and `/v1/metrics` are added"},
		func(l *Loaded) *string { return &l.Telemetry.OTLP.Endpoint }),
	field(key{name: "protocol", kind: enum("grpc", "http/protobuf"), std: "($OTEL_EXPORTER_OTLP_PROTOCOL, or http/protobuf)", doc: "the protocol; port 4317 is usually `grpc`, 4318 `http/protobuf`"},
		func(l *Loaded) *string { return &l.Telemetry.OTLP.Protocol }),
	{
		name: "headers", kind: headerKind, names: headerNames, std: "($OTEL_EXPORTER_OTLP_HEADERS)", doc: "headers of each request: the name of the entry of `secrets` that holds the value",
		sets: to(func(l *Loaded, s setting) { put(&l.Telemetry.OTLP.Headers, s.name, s.data.(string)) }),
	},
	{
		name: "traces", kind: boolKind, std: "true", doc: "send a trace of each call",
		sets: to(func(l *Loaded, s setting) { l.Telemetry.OTLP.NoTraces = !s.data.(bool) }),
	},
	{
		name: "metrics", kind: boolKind, std: "true", doc: "send the metrics that `/metrics` has",
		sets: to(func(l *Loaded, s setting) { l.Telemetry.OTLP.NoMetrics = !s.data.(bool) }),
	},
	field(key{name: "audit", kind: boolKind, std: "false", doc: "send audit records as logs, too"},
		func(l *Loaded) *bool { return &l.Telemetry.OTLP.Audit }),
	field(key{name: "interval", kind: durationKind, std: "($OTEL_METRIC_EXPORT_INTERVAL, or 60s)", doc: "how often metrics are sent"},
		func(l *Loaded) *time.Duration { return &l.Telemetry.OTLP.Interval }),
	field(key{name: "timeout", kind: durationKind, std: "($OTEL_EXPORTER_OTLP_TIMEOUT, or 10s)", doc: "how long the collector may take for a request"},
		func(l *Loaded) *time.Duration { return &l.Telemetry.OTLP.Timeout }),
}

// endpointKind is the URL of a collector. Credentials are for headers.
var endpointKind = scalar("URL of a collector", `^https?://[^/?#@]+(/[^?#]*)?$`, func(s string) (any, string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, "is not a URL of a collector: write http://HOST:PORT or https://HOST:PORT"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, "has more than a scheme, a host and a path: give credentials as headers"
	}
	return s, ""
})

// headerKind is the name of a secret.
var headerKind = scalarLike("name of a secret", namePattern, "is not a name for a secret: write that of an entry of secrets, which holds the header's value")

// headerNames are the tokens of RFC 9110, but for those with a dot.
var headerNames = namesLike("HEADER", "^[A-Za-z0-9!#$%&'*+^_`|~-]{1,128}$", "is not a name of a header: write one such as Authorization")

// telemetry checks that what headers refer to is there, and that it is not sent
// through a network for all to read.
func (b *builder) telemetry() {
	otlp := b.loaded.Telemetry.OTLP
	for name, secret := range otlp.Headers {
		s := b.root.set["telemetry.otlp.headers."+name]
		if !slices.ContainsFunc(b.root.named["secrets"], func(n *node) bool { return n.value == secret }) {
			b.complain(s.node, "unknown secret %s: %s", quoted(secret), b.knownSecrets(secret))
		}
		if Unencrypted(otlp.Endpoint) {
			b.complain(s.node, "the header would go unencrypted through the network: write https:// in endpoint")
		}
	}
}

// Unencrypted says whether a collector's URL is reached without encryption, and
// through a network. The empty one, which is for the environment to give, is not.
func Unencrypted(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || !strings.EqualFold(u.Scheme, "http") || u.Hostname() == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback()
}
