package telemetry

import (
	"strings"
	"testing"
)

func TestPlan(t *testing.T) {
	const url = "http://127.0.0.1:4318"
	off, both := signalPlan{}, exportPlan{traces: signalPlan{true, ProtocolHTTP, ""}, metrics: signalPlan{true, ProtocolHTTP, ""}}
	for name, c := range map[string]struct {
		export  Export
		environ string
		want    exportPlan
	}{
		"nothing":            {},
		"headers alone":      {Export{Headers: map[string]string{"a": "b"}, Protocol: ProtocolGRPC}, "OTEL_EXPORTER_OTLP_HEADERS=a=b", exportPlan{}},
		"file":               {Export{Endpoint: url}, "", exportPlan{traces: signalPlan{true, ProtocolHTTP, url + "/v1/traces"}, metrics: signalPlan{true, ProtocolHTTP, url + "/v1/metrics"}}},
		"file with a path":   {Export{Endpoint: url + "/otlp/", NoMetrics: true}, "", exportPlan{traces: signalPlan{true, ProtocolHTTP, url + "/otlp/v1/traces"}}},
		"file, grpc":         {Export{Endpoint: url, Protocol: ProtocolGRPC, NoTraces: true}, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", exportPlan{metrics: signalPlan{true, ProtocolGRPC, url}}},
		"file over variable": {Export{Endpoint: url, NoMetrics: true}, "OTEL_EXPORTER_OTLP_ENDPOINT=http://elsewhere", exportPlan{traces: signalPlan{true, ProtocolHTTP, url + "/v1/traces"}}},
		"variable":           {Export{}, "OTEL_EXPORTER_OTLP_ENDPOINT=" + url, both},
		"variable of one":    {Export{}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + url + "/x OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc", exportPlan{traces: signalPlan{true, ProtocolGRPC, ""}}},
		"disabled":           {Export{Endpoint: url}, "OTEL_SDK_DISABLED=TRUE", exportPlan{}},
		"no traces":          {Export{Endpoint: url}, "OTEL_TRACES_EXPORTER=none", exportPlan{off, signalPlan{true, ProtocolHTTP, url + "/v1/metrics"}, off}},
		"audit":              {Export{Endpoint: url, NoMetrics: true, NoTraces: true, Audit: true}, "", exportPlan{audit: signalPlan{true, ProtocolHTTP, url + "/v1/logs"}}},
		"another exporter":   {Export{}, "OTEL_METRICS_EXPORTER=prometheus OTEL_TRACES_EXPORTER=otlp,console OTEL_EXPORTER_OTLP_ENDPOINT=" + url, exportPlan{both.traces, off, off}},
	} {
		got, err := planExport(c.export, environ(c.environ))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, c.want)
		}
	}
}

// What is wrong is told, rather than replaced by the SDK's own default.
func TestWrongPlan(t *testing.T) {
	for text, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4317":                                             "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=::":                                                 "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is not a URL",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://x OTEL_EXPORTER_OTLP_PROTOCOL=http/json":             "OTEL_EXPORTER_OTLP_PROTOCOL is \"http/json\"",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://x OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=carrier": "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is",
	} {
		if plan, err := planExport(Export{}, environ(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v, %v", text, plan, err)
		}
	}
}

// Secret headers go to no collector that is spoken with in plain text elsewhere,
// whoever names it.
func TestSecretHeadersAreNotSentInPlainText(t *testing.T) {
	secret := Export{Headers: map[string]string{"X-Key": secretText}}
	for text, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.example:4318":                                           "by OTEL_EXPORTER_OTLP_ENDPOINT",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://192.0.2.1":                                                 "by OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://x OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://x":                  "by OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://x OTEL_EXPORTER_OTLP_INSECURE=true":                              "by OTEL_EXPORTER_OTLP_INSECURE",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://x OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=otlp":           "unencrypted",
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://collector.example":                                               "",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://[::1]:1": "",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://x OTEL_SDK_DISABLED=true":                                         "",
	} {
		_, err := planExport(secret, environ(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secretText)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := planExport(Export{}, environ("OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.example")); err != nil {
		t.Errorf("without secrets: %v", err)
	}
}

func environ(text string) func(string) string {
	all := map[string]string{}
	for entry := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(entry, "=")
		all[name] = value
	}
	return func(name string) string { return all[name] }
}
