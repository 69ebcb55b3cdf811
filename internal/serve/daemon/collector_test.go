//go:build collector

package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/telemetry"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// buildBound is far beyond what it takes to download and compile the collector.
const buildBound = 5 * time.Minute

// buildCollector compiles the OpenTelemetry Collector's receiver, which is a
// module of its own.
func buildCollector(t *testing.T) (program string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildBound)
	defer cancel()
	const source = "../../testenv/collector"
	if _, err := os.ReadDir(source); err != nil { // a cached pass is of this source
		t.Fatal(err)
	}
	program = filepath.Join(t.TempDir(), "collector")
	cmd := exec.CommandContext(ctx, "go", "-C", source, "build", "-buildvcs=false", "-o", program, ".")
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the collector: %v\n%s", err, out)
	}
	return program
}

// Lines of the collector's output.
type (
	seenLine struct {
		Level    string // of the receiver's log alone
		Msg      string
		Endpoint string
		Resource map[string]any
		Span     *seenSpan
		Metric   *seenMetric
		Log      *seenRecord
	}
	seenRecord struct {
		Event, Severity, Body string
		Time                  int64
		Attributes            map[string]any
	}
	seenSpan struct {
		Name, TraceID, SpanID, ParentID, Kind, Status, Message string
		Start, End                                             int64
		Attributes                                             map[string]any
	}
	seenMetric struct {
		Name, Unit, Type, Temporality string
		Monotonic                     bool
		Points                        []struct {
			Attributes map[string]any
			Value, Sum float64
			Count      uint64
		}
	}
)

// realCollector is one that runs.
type realCollector struct {
	t      *testing.T
	input  io.Closer // it ends with its input
	output logged
	errors logged
	exited chan error
}

func startCollector(t *testing.T, program string) *realCollector {
	t.Helper()
	c := &realCollector{t: t, exited: make(chan error, 1)}
	cmd := exec.Command(program)
	cmd.Stdout, cmd.Stderr = &c.output, &c.errors
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.input = input
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.exited <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-over
		if t.Failed() {
			t.Logf("the collector's output:\n%s%s", c.output.text(), c.errors.text())
		}
	})
	return c
}

var serves = regexp.MustCompile(`"msg":"Starting (GRPC|HTTP) server".*"endpoint":"([^"]+)"`)

// url is where it takes a protocol.
func (c *realCollector) url(protocol string) (url string) {
	c.t.Helper()
	want := map[string]string{telemetry.ProtocolGRPC: "GRPC", telemetry.ProtocolHTTP: "HTTP"}[protocol]
	wait.Until(c.t, "the collector takes "+want, func() bool {
		for _, found := range serves.FindAllStringSubmatch(c.output.text(), -1) {
			if found[1] == want {
				url = "http://" + found[2]
			}
		}
		return url != ""
	})
	return url
}

// end ends it and gives all that it has written.
func (c *realCollector) end() (lines []seenLine) {
	c.t.Helper()
	_ = c.input.Close()
	select {
	case err := <-c.exited:
		if err != nil {
			c.t.Errorf("the collector has failed: %v: %s", err, c.errors.text())
		}
	case <-wait.Context(c.t).Done():
		c.t.Fatal("the collector does not end")
	}
	from := json.NewDecoder(strings.NewReader(c.output.text()))
	for {
		var l seenLine
		switch err := from.Decode(&l); err {
		case nil:
			lines = append(lines, l)
		case io.EOF:
			return lines
		default:
			c.t.Fatalf("a line of the collector's is not JSON: %v", err)
		}
	}
}

// taken is what a collector got of a daemon.
type taken struct {
	t       *testing.T
	spans   []*seenSpan
	metrics map[string]*seenMetric // the last of each
	records []*seenRecord
}

// newTaken wants nothing but telemetry of the daemon, and no complaint.
func newTaken(t *testing.T, lines []seenLine) *taken {
	t.Helper()
	got := &taken{t: t, metrics: map[string]*seenMetric{}}
	for _, l := range lines {
		switch {
		case l.Span != nil:
			got.spans = append(got.spans, l.Span)
		case l.Metric != nil:
			got.metrics[l.Metric.Name] = l.Metric
		case l.Log != nil:
			got.records = append(got.records, l.Log)
		case l.Level != "info":
			t.Errorf("the collector says %s: %s", l.Level, l.Msg)
		}
		if l.Level == "" && (l.Resource["service.name"] != "toolhost" || l.Resource["service.version"] != "test") {
			t.Errorf("resource %v", l.Resource)
		}
	}
	return got
}

// children are the spans below another, by name.
func (got *taken) children(id string) map[string]*seenSpan {
	found := map[string]*seenSpan{}
	for _, s := range got.spans {
		if s.ParentID == id {
			found[s.Name] = s
		}
	}
	return found
}

// call checks a call's span below its parent, and which phases it has.
func (got *taken) call(traceparent, tool, status string, phases ...string) {
	got.t.Helper()
	ids := strings.Split(traceparent, "-")
	root := got.children(ids[2])["execute_tool "+tool]
	if root == nil {
		got.t.Errorf("no span of %s below %s", tool, traceparent)
		return
	}
	if root.TraceID != ids[1] || root.Kind != "Internal" || root.End <= root.Start {
		got.t.Errorf("%s: %+v", tool, root)
	}
	for name, want := range map[string]any{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": "function", "gen_ai.tool.call.id": tool,
		"toolhost.status": status, "toolhost.timeout.profile": "tool_call", "toolhost.timeout.ms": 5000.0,
	} {
		if root.Attributes[name] != want {
			got.t.Errorf("%s: %s is %v, want %v", tool, name, root.Attributes[name], want)
		}
	}
	failed, told := root.Attributes["error.type"]
	if want := status != "ok"; told != want || want && (failed != status || root.Status != "Error" || root.Message != status) || !want && root.Status != "Unset" {
		got.t.Errorf("%s: status %s %q, error.type %v", tool, root.Status, root.Message, failed)
	}
	below := got.children(root.SpanID)
	if len(below) != len(phases) {
		got.t.Errorf("%s has %d phases, want %v", tool, len(below), phases)
	}
	for _, name := range phases {
		if s := below[name]; s == nil || s.TraceID != root.TraceID || s.Start < root.Start || s.End > root.End || s.Status != "Unset" {
			got.t.Errorf("%s: %s is %+v", tool, name, s)
		}
	}
	if kill := below["kill"]; kill != nil && (kill.Attributes["toolhost.kill.cause"] != "deadline" || kill.Attributes["toolhost.kill.stage"] != "kill") {
		got.t.Errorf("kill: %v", kill.Attributes)
	}
}

// value is that of a counter or gauge, or the count of a histogram; -1 if there
// is none with these labels.
func (got *taken) value(name string, labels map[string]any) float64 {
	m := got.metrics[name]
	if m == nil {
		return -1
	}
	for _, p := range m.Points {
		if maps.Equal(p.Attributes, labels) {
			return p.Value + float64(p.Count)
		}
	}
	return -1
}

func (got *taken) checkMetrics() {
	got.t.Helper()
	rpc := map[string]any{"service": "toolhost.plugin.v1.Tool", "profile": "tool_call", "method": "Call"}
	for _, m := range []struct {
		name, kind string
		labels     map[string]any
		want       float64
	}{
		{"toolhost_calls_total", "Sum", map[string]any{"tool": "lines", "status": "ok"}, 1},
		{"toolhost_calls_total", "Sum", map[string]any{"tool": "work", "status": "timeout"}, 1},
		{"toolhost_timeouts_total", "Sum", map[string]any{"tool": "work", "profile": "tool_call", "reason": "deadline"}, 1},
		{"toolhost_call_duration_seconds", "Histogram", map[string]any{"tool": "work"}, 1},
		{"toolhost_call_queue_seconds", "Histogram", map[string]any{}, 2},
		{"toolhost_kills_total", "Sum", map[string]any{"cause": "deadline"}, 1},
		{"toolhost_kill_signals_total", "Sum", map[string]any{"signal": "SIGKILL"}, 1},
		{"toolhost_kill_latency_seconds", "Histogram", map[string]any{"cause": "deadline"}, 1},
		{"toolhost_kill_survivors_total", "Sum", map[string]any{}, 0},
		{"toolhost_turns_total", "Sum", map[string]any{}, 1},
		{"toolhost_calls_running", "Gauge", map[string]any{}, 0},
		{"toolhost_otlp_export_errors_total", "Sum", map[string]any{"signal": "traces"}, 0},
		{"toolhost_otlp_export_errors_total", "Sum", map[string]any{"signal": "metrics"}, 0},
		{"toolhost_otlp_dropped_calls_total", "Sum", map[string]any{}, 0},
		{"sw4rm_rpc_timeout_total", "Sum", rpc, 1},
		{"sw4rm_rpc_duration_ms", "Histogram", rpc, 2},
	} {
		if value := got.value(m.name, m.labels); value != m.want {
			got.t.Errorf("%s%v is %v, want %v", m.name, m.labels, value, m.want)
		}
		of := got.metrics[m.name]
		if of == nil {
			continue
		}
		if of.Type != m.kind || of.Unit != "" || m.kind == "Sum" && !of.Monotonic || m.kind != "Gauge" && of.Temporality != "Cumulative" {
			got.t.Errorf("%s is of type %s, unit %q, monotonic: %v, %s", m.name, of.Type, of.Unit, of.Monotonic, of.Temporality)
		}
	}
}

// checkRecords wants the audit records of the chain, each once and as it is there.
func (got *taken) checkRecords(state string) {
	got.t.Helper()
	reader, err := journal.OpenReader(state)
	if err != nil {
		got.t.Fatal(err)
	}
	defer reader.Close()
	n := 0
	err = reader.Audits(0, func(a journal.Audit) bool {
		if n++; n > len(got.records) {
			return false
		}
		r := got.records[n-1]
		if r.Event != "toolhost.audit."+a.Action || r.Body != a.Words() || r.Time != a.Time.UnixNano() || r.Attributes["toolhost.audit.hash"] != a.Hash ||
			r.Attributes["toolhost.audit.seq"] != float64(a.Seq) || (r.Severity == "Warn") != a.Refused() {
			got.t.Errorf("the collector has %+v of %+v", r, a)
		}
		return true
	})
	if err != nil || n != len(got.records) || n < 4 {
		got.t.Errorf("the collector has %d records, the chain %d: %v", len(got.records), n, err)
	}
}

var exposed = regexp.MustCompile(`(?m)^# TYPE (\S+) `)

// checkNames wants all metrics that Prometheus sees, by the same names.
func (got *taken) checkNames(scraped string) {
	got.t.Helper()
	names := exposed.FindAllStringSubmatch(scraped, -1)
	if len(names) == 0 {
		got.t.Errorf("no metrics: %s", scraped)
	}
	for _, name := range names {
		if got.metrics[name[1]] == nil {
			got.t.Errorf("the collector has no metric %s", name[1])
		}
	}
}

// What is sent is taken by the OpenTelemetry Collector's own receiver as it was
// meant, by either protocol.
func TestRealCollector(t *testing.T) {
	t.Parallel()
	program := buildCollector(t)
	for _, protocol := range []string{telemetry.ProtocolGRPC, telemetry.ProtocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := startCollector(t, program)
			w := newWorld(t, fmt.Sprintf("kill: {grace: 100ms}\ntelemetry: {otlp: {endpoint: %q, protocol: %s, audit: true}}\n", c.url(protocol), protocol))
			w.Listen = "127.0.0.1:0"
			d := w.daemon()
			bearerOf(t, d, "ci")
			if status, _ := d.get("/api/tools", "Bearer wrong"); status != http.StatusUnauthorized {
				t.Errorf("a wrong token: %d", status)
			}
			turnID := w.begin()
			for tool, call := range map[string]client.Call{
				"lines": {Arguments: arguments(t, map[string]string{"text": "s3cret"}), Meta: []byte(`{"dev.toolhost/timeoutMs": 5000, "traceparent": "` + headerTrace + `"}`)},
				"work":  {Arguments: arguments(t, workArgs{Deaf: true, Text: "s3cret"}), Meta: []byte(`{"dev.toolhost/timeoutMs": 5000, "traceparent": "` + ownTrace + `"}`)},
			} {
				call.ID, call.Tool = tool, tool
				if o := w.run(turnID, call); o.err != nil {
					t.Fatal(o.err)
				}
			}
			var scraped string
			wait.Until(t, "the calls are counted, and their slots free", func() bool {
				scraped = d.scrape()
				return sample(scraped, `toolhost_calls_total{status="timeout",tool="work"}`) == 1 && sample(scraped, `toolhost_calls_running`) == 0
			})
			d.waitLog("token.create")
			d.signal(syscall.SIGTERM)
			if code := d.code(); code != 0 || strings.Contains(d.log.text(), "telemetry cannot be sent") {
				t.Errorf("exit status %d: %s", code, d.log.text())
			}
			got := newTaken(t, c.end())
			got.call(headerTrace, "lines", "ok", "queue", "start", "run")
			got.call(ownTrace, "work", "timeout", "queue", "start", "run", "kill")
			got.checkMetrics()
			got.checkNames(scraped)
			got.checkRecords(w.State)
			if len(got.spans) != 9 || strings.Contains(c.output.text(), "s3cret") {
				t.Errorf("%d spans, want 9, or arguments or output have been sent", len(got.spans))
			}
		})
	}
}
