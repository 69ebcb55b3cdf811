package config

import (
	"strings"
	"testing"
)

func TestWrongTelemetryKeys(t *testing.T) {
	const secret = "secrets: {a: {file: secrets/api}}\n"
	for text, want := range map[string]string{
		"telemetry: {otlp: {endpoint: \"127.0.0.1:4317\"}}":           "is not a URL of a collector",
		"telemetry: {otlp: {endpoint: \"ftp://x\"}}":                  "is not a URL of a collector",
		"telemetry: {otlp: {endpoint: \"http://me:pw@host:1\"}}":      "give credentials as headers",
		"telemetry: {otlp: {endpoint: \"http://host:1?key=pw\"}}":     "give credentials as headers",
		"telemetry: {otlp: {protocol: http/json}}":                    "must be one of",
		"telemetry: {otlp: {headers: {X-Key: b}}}":                    "unknown secret \"b\"",
		"telemetry: {otlp: {headers: {X-Key: \"Bearer x\"}}}":         "is not a name for a secret",
		"telemetry: {otlp: {headers: {\"X Key\": a}}}":                "is not a name of a header",
		"telemetry: {otlp: {traces: 1}}":                              "neither true nor false",
		"telemetry: {syslog: {address: \"localhost:514\"}}":           "is not an address of a syslog receiver",
		"telemetry: {syslog: {address: \"udp://localhost\"}}":         "is not an address of a syslog receiver",
		"telemetry: {syslog: {address: \"unix://dev/log\"}}":          "is not an address of a syslog receiver",
		"telemetry: {syslog: {address: \"tls://me:pw@host:6514\"}}":   "is not an address of a syslog receiver",
		"telemetry: {otlp: {interval: 0s}}":                           "is not positive",
		"telemetry: {endpoint: \"http://127.0.0.1:4318\"}":            "telemetry.otlp",
		secret + otlpTo("http://collector.example:4318"):              "unencrypted",
		secret + otlpTo("http://127.0.0.1.example:4318"):              "unencrypted",
		"telemetry: {otlp: {endpoint: \"http://127.0.0.1:4318\", x}}": "unknown key",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", text, err, want)
		}
	}
	for _, endpoint := range []string{"https://collector.example", "http://localhost:4318", "http://[::1]:4318/otlp"} {
		if _, err := load(t, secret+otlpTo(endpoint)); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func otlpTo(endpoint string) string {
	return "telemetry: {otlp: {endpoint: \"" + endpoint + "\", headers: {X-Key: a}}}"
}
