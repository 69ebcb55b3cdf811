package telemetry

import (
	"bytes"
	"encoding/hex"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/turn"
)

// plainEnvironment keeps what the machine has set out of a test.
func plainEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_LOGS_EXPORTER", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_TRACES_SAMPLER", "http_proxy", "HTTP_PROXY"} {
		t.Setenv(name, "")
	}
}

func TestOTLP(t *testing.T) {
	for _, protocol := range []string{ProtocolGRPC, ProtocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			plainEnvironment(t)
			r := receive(t, protocol)
			told := newTelemetry(t, Config{Version: "v9", Export: Export{Endpoint: r.url, Protocol: protocol, Headers: map[string]string{"X-Key": "k"}}})
			told.Observe([]turn.Record{timedOut(), fine(), refused()})
			told.Close()
			checkSpans(t, r)
			checkMetrics(t, r)
			of := attributes(r.resource.GetAttributes())
			if of["service.name"] != "toolhost" || of["service.version"] != "v9" {
				t.Errorf("resource %v", of)
			}
			for name := range of {
				if strings.HasPrefix(name, "process.command") {
					t.Errorf("the resource tells of arguments: %v", of)
				}
			}
			if len(r.keys) < 2 || r.keys[0] != "k" {
				t.Errorf("headers %q", r.keys)
			}
		})
	}
}

// The environment alone is enough, and names the service.
func TestOTLPFromEnvironment(t *testing.T) {
	plainEnvironment(t)
	r := receive(t, ProtocolGRPC)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.url)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=env")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	told := newTelemetry(t, Config{})
	told.Observe([]turn.Record{fine()})
	told.Close()
	if len(r.spans) != 4 || attributes(r.resource.GetAttributes())["service.name"] != "mine" || r.keys[0] != "env" || r.metrics["toolhost_calls_total"] == nil {
		t.Errorf("%d spans, %v, %q", len(r.spans), r.resource, r.keys)
	}
}

// What the SDK cannot read of the headers is told of, but not shown.
func TestMalformedHeadersAreNotLogged(t *testing.T) {
	plainEnvironment(t)
	var logged bytes.Buffer
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key "+secretText+",x-%zz="+secretText+",x-key="+secretText+"%zz")
	told := newTelemetry(t, Config{
		Export: Export{Interval: time.Hour},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: &logged, Mutex: &sync.Mutex{}}),
	})
	told.Close()
	if text := logged.String(); !strings.Contains(text, "parse headers") || strings.Contains(text, secretText) {
		t.Errorf("logged: %s", text)
	}
}

// Nothing is sent, nor is there anything to send it, unless that is configured.
func TestNothingIsSentByDefault(t *testing.T) {
	plainEnvironment(t)
	told := newTelemetry(t, Config{})
	if told.export != nil || told.traces() != nil {
		t.Errorf("there are exports: %+v", told.export)
	}
	told.Close()
}

func checkSpans(t *testing.T, r *receiver) {
	t.Helper()
	by := map[string]*tracepb.Span{}
	for _, s := range r.spans {
		if strings.Contains(prototext.Format(s), secretText) {
			t.Errorf("a span holds free text: %s", prototext.Format(s))
		}
		if hex.EncodeToString(s.GetTraceId()) == "0af7651916cd43dd8448eb211c80319c" || len(s.GetParentSpanId()) == 0 {
			by[s.GetName()] = s
		}
	}
	root := by["execute_tool slow"]
	if root == nil || by["execute_tool quick"] == nil || by["execute_tool other"] == nil {
		t.Fatalf("spans %v", r.spans)
	}
	if hex.EncodeToString(root.GetParentSpanId()) != "b7ad6b7169203331" || root.GetKind() != tracepb.Span_SPAN_KIND_INTERNAL {
		t.Errorf("the root has the parent %x and kind %s", root.GetParentSpanId(), root.GetKind())
	}
	for name, times := range map[string][2]int{
		"execute_tool slow": {0, 3540}, "queue": {10, 30}, "start": {30, 50}, "run": {50, 1530}, "kill": {1530, 3535},
	} {
		s := by[name]
		if s == nil {
			t.Errorf("no span %s", name)
			continue
		}
		if got := [2]time.Time{time.Unix(0, int64(s.GetStartTimeUnixNano())), time.Unix(0, int64(s.GetEndTimeUnixNano()))}; !got[0].Equal(at(times[0])) || !got[1].Equal(at(times[1])) {
			t.Errorf("%s is from %s to %s, want %v", name, got[0].Sub(began), got[1].Sub(began), times)
		}
		if s != root && !bytes.Equal(s.GetParentSpanId(), root.GetSpanId()) {
			t.Errorf("%s has another parent", name)
		}
	}
	got := attributes(root.GetAttributes())
	for name, want := range map[string]string{
		operationName: "execute_tool", toolName: "slow", toolType: "function", toolCallID: "call_1", errorType: "timeout", "toolhost.turn.id": "turn1",
		"toolhost.network.connections": "8", "toolhost.network.refused": "10", "toolhost.network.sent_bytes": "50", "toolhost.network.received_bytes": "507",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if root.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR || by["execute_tool quick"].GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("status %v", root.GetStatus())
	}
	if kill := attributes(by["kill"].GetAttributes()); kill["toolhost.kill.cause"] != "deadline" || kill["toolhost.kill.stage"] != "kill" {
		t.Errorf("kill %v", kill)
	}
}

func checkMetrics(t *testing.T, r *receiver) {
	t.Helper()
	calls := 0.0
	for _, point := range r.metrics["toolhost_calls_total"].GetSum().GetDataPoints() {
		calls += point.GetAsDouble()
	}
	if calls != 3 || !r.metrics["toolhost_calls_total"].GetSum().GetIsMonotonic() {
		t.Errorf("%v calls", calls)
	}
	killed, latency := uint64(0), 0.0
	for _, point := range r.metrics["toolhost_kill_latency_seconds"].GetHistogram().GetDataPoints() {
		killed, latency = killed+point.GetCount(), latency+point.GetSum()
	}
	if killed != 1 || latency < 2.0049 {
		t.Errorf("%d kills of %v s", killed, latency)
	}
	for name, m := range r.metrics {
		if strings.Contains(prototext.Format(m), secretText) {
			t.Errorf("%s holds free text", name)
		}
	}
}

// A parent that is not sampled keeps the call out, and a malformed one counts
// for nothing.
func TestParents(t *testing.T) {
	plainEnvironment(t)
	r := receive(t, ProtocolHTTP)
	told := newTelemetry(t, Config{Export: Export{Endpoint: r.url, NoMetrics: true}})
	unsampled, odd := timedOut(), fine()
	unsampled.TraceParent = strings.TrimSuffix(unsampled.TraceParent, "01") + "00"
	odd.TraceParent = "00-" + secretText
	told.Observe([]turn.Record{unsampled, odd})
	told.Close()
	if len(r.spans) != 4 || r.spans[len(r.spans)-1].GetName() != "execute_tool quick" || len(r.spans[len(r.spans)-1].GetParentSpanId()) != 0 {
		t.Errorf("spans %v", r.spans)
	}
}

// hung is a collector that takes connections and never answers.
func hung(t *testing.T, protocol string) (url string) {
	t.Helper()
	if protocol == ProtocolHTTP {
		over := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
		t.Cleanup(func() { close(over); server.Close() })
		return server.URL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// However slow or deaf the collector is, nobody waits for it: what there is no
// room for is counted, and Close ends.
func TestHungCollector(t *testing.T) {
	for _, protocol := range []string{ProtocolGRPC, ProtocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			told := newTelemetry(t, Config{
				Export: Export{Endpoint: hung(t, protocol), Protocol: protocol, Timeout: time.Hour},
				Logger: hclog.New(&hclog.LoggerOptions{Output: &said, Mutex: &sync.Mutex{}}),
			})
			const calls = 20_000
			records := []turn.Record{fine()}
			began := time.Now()
			for range calls {
				told.Observe(records)
			}
			t.Logf("%s for each call", time.Since(began)/calls)
			got := samples(t, told)
			if got["toolhost_calls_total{status=ok,tool=quick}"] != calls || got["toolhost_otlp_dropped_calls_total{}"] < calls/2 {
				t.Errorf("%v counted, %v without a trace", got["toolhost_calls_total{status=ok,tool=quick}"], got["toolhost_otlp_dropped_calls_total{}"])
			}
			closed := make(chan struct{})
			go func() { defer close(closed); told.Close() }()
			select {
			case <-closed:
			case <-wait.Context(t).Done():
				t.Fatal("Close hangs")
			}
			if n := strings.Count(said.String(), "telemetry cannot be sent"); n == 0 || n > 2 {
				t.Errorf("%d lines of log: %s", n, said.String())
			}
			if got := samples(t, told)["toolhost_otlp_export_errors_total{signal=traces}"]; got == 0 {
				t.Error("no failure is counted")
			}
		})
	}
}

// A collector's certificate is checked against the one that the environment
// names, and against nothing less.
func TestOTLPOverTLS(t *testing.T) {
	plainEnvironment(t)
	r := &receiver{metrics: map[string]*metricspb.Metric{}}
	server := httptest.NewUnstartedServer(r)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the refused handshake
	server.StartTLS()
	defer server.Close()
	send := func(timeout time.Duration) {
		told := newTelemetry(t, Config{Export: Export{Endpoint: server.URL, NoMetrics: true, Timeout: timeout}})
		told.Observe([]turn.Record{fine()})
		told.Close()
	}
	send(time.Second)
	if len(r.spans) != 0 {
		t.Error("spans were sent to a stranger")
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
	send(wait.Bound)
	if len(r.spans) != 4 {
		t.Errorf("%d spans", len(r.spans))
	}
}
