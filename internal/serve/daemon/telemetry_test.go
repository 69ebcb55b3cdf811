package daemon

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// scrape gets the metrics as Prometheus does, by TCP with the token of a file.
func (p *process) scrape() string {
	p.t.Helper()
	token, err := os.ReadFile(filepath.Join(p.State, MetricsTokenName))
	if err != nil {
		p.t.Fatal(err)
	}
	status, text := p.get("/metrics", "Bearer "+strings.TrimSpace(string(token)))
	if status != http.StatusOK {
		p.t.Fatalf("%d: %s", status, text)
	}
	return text
}

func (p *process) get(path, authorization string) (status int, text string) {
	p.t.Helper()
	q, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.tcp()+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if authorization != "" {
		q.Header.Set("Authorization", authorization)
	}
	q.Header.Set("Accept", "text/plain;version=0.0.4")
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// sample is the value of one line of the exposition; -1 if it is not there.
func sample(text, name string) float64 {
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		return -1
	}
	value, _ := strconv.ParseFloat(found[1], 64)
	return value
}

// hang makes a call that is killed after five seconds.
func (w *world) hang(turnID, id string) *api.Result {
	w.t.Helper()
	o := w.run(turnID, api.Call{
		ID: id, Tool: "work", Arguments: arguments(w.t, workArgs{Deaf: true, Text: "s3cret"}), Meta: []byte(`{"dev.toolhost/timeoutMs": 5000}`),
	})
	if o.err != nil || o.result.Status != api.StatusTimeout {
		w.t.Fatalf("%v: %+v", o.err, o.result)
	}
	return o.result
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "kill: {grace: 100ms}\n")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	for _, name := range []string{
		`toolhost_calls_total{status="overloaded",tool="lines"}`, `toolhost_pids_limit_hits_total{tool="work"}`,
		`toolhost_timeouts_total{profile="tool_call",reason="deadline",tool="work"}`,
	} {
		if first := d.scrape(); sample(first, name) != 0 {
			t.Errorf("%s is %v before the first call, want 0", name, sample(first, name))
		}
	}
	turnID := w.begin()
	w.mustRun(turnID, "lines", map[string]string{"text": "s3cret"})
	killed := w.hang(turnID, "hung")
	if o := w.run(turnID, api.Call{ID: "n", Tool: "s3cret"}); o.err != nil || o.result.Status != api.StatusInvalidArgs {
		t.Errorf("%+v", o)
	}
	var text string
	wait.Until(t, "all calls are counted", func() bool {
		text = d.scrape()
		return sample(text, `toolhost_calls_total{status="invalid_args",tool="other"}`) == 1 && sample(text, `toolhost_calls_running`) == 0
	})
	for name, want := range map[string]float64{
		`toolhost_calls_total{status="ok",tool="lines"}`:                                                               1,
		`toolhost_calls_total{status="timeout",tool="work"}`:                                                           1,
		`toolhost_timeouts_total{profile="tool_call",reason="deadline",tool="work"}`:                                   1,
		`toolhost_kill_signals_total{signal="SIGKILL"}`:                                                                1,
		`toolhost_kill_latency_seconds_count{cause="deadline"}`:                                                        1,
		`toolhost_kill_survivors_total`:                                                                                0,
		`toolhost_turns_active`:                                                                                        1,
		`toolhost_call_queue_seconds_count`:                                                                            2,
		`sw4rm_rpc_timeout_total{method="Call",profile="tool_call",service="toolhost.plugin.v1.Tool"}`:                 1,
		`sw4rm_rpc_duration_ms_count{method="Call",profile="tool_call",service="toolhost.plugin.v1.Tool"}`:             2,
		`sw4rm_rpc_duration_ms_bucket{method="Call",profile="tool_call",service="toolhost.plugin.v1.Tool",le="60000"}`: 2, // of milliseconds
	} {
		if got := sample(text, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	measured := sample(text, `toolhost_kill_latency_seconds_sum{cause="deadline"}`)
	if told := float64(killed.Kill.TermLatencyUs+killed.Kill.LatencyUs)/1e6 + float64(killed.Timing.GraceMs)/1e3; measured < told-.05 || measured > told+.05 {
		t.Errorf("the kill took %v s, and the result says %v", measured, told)
	}
	if sample(text, "process_resident_memory_bytes") <= 0 || sample(text, "toolhost_journal_size_bytes") <= 0 || strings.Contains(text, "s3cret") {
		t.Errorf("metrics:\n%s", text)
	}
	token, _ := os.ReadFile(filepath.Join(w.State, MetricsTokenName))
	for _, path := range []string{"/api/tools", "/api/turns/active", "/api/ready", "/mcp"} {
		if status, text := d.get(path, "Bearer "+strings.TrimSpace(string(token))); status != http.StatusForbidden {
			t.Errorf("the metrics' token opens %s: %d, %s", path, status, text)
		}
	}
	for _, authorization := range []string{"", "Bearer wrong"} {
		if status, text := d.get("/metrics", authorization); status != http.StatusUnauthorized || strings.Contains(text, "toolhost_") {
			t.Errorf("with %q: %d, %s", authorization, status, text)
		}
	}
	d.waitLog(fmt.Sprintf("call timed out: call=hung tool=work turn=%s status=timeout elapsedMs=%d reason=deadline profile=tool_call configuredMs=5000", turnID, killed.Timing.ElapsedMs))
}

// collector takes traces over OTLP/HTTP.
type collector struct {
	mu    sync.Mutex
	spans []*tracepb.Span
	raw   []byte
}

func (c *collector) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	raw, err := io.ReadAll(q.Body)
	in := &collectortrace.ExportTraceServiceRequest{}
	if err != nil || q.URL.Path != "/v1/traces" || proto.Unmarshal(raw, in) != nil {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, raw...)
	for _, of := range in.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
}

// find is the span of a name below another; nil if there is none.
func (c *collector) find(name string, parent []byte) *tracepb.Span {
	for _, s := range c.spans {
		if s.GetName() == name && bytes.Equal(s.GetParentSpanId(), parent) {
			return s
		}
	}
	return nil
}

func took(s *tracepb.Span) int64 {
	return int64(s.GetEndTimeUnixNano()-s.GetStartTimeUnixNano()) / int64(time.Millisecond)
}

const (
	headerTrace = "00-11111111111111111111111111111111-1111111111111111-01"
	ownTrace    = "00-22222222222222222222222222222222-2222222222222222-01"
	mcpTrace    = "00-33333333333333333333333333333333-3333333333333333-01"
)

// Each call has its trace, below that of its request or its own, with the times
// that its result tells, and all is sent before the daemon ends.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	w := newWorld(t, "kill: {grace: 100ms}\ntelemetry: {otlp: {endpoint: \""+server.URL+"\", protocol: http/protobuf, metrics: false}}\n")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	turnID := w.begin()
	token, _ := os.ReadFile(filepath.Join(w.State, TokenName))
	body := `{"calls": [{"id": "a", "tool": "lines", "arguments": {"text": "s3cret"}}, {"id": "b", "tool": "work", "arguments": {"deaf": true, "text": "s3cret"}, "meta": {"dev.toolhost/timeoutMs": 5000, "traceparent": "` + ownTrace + `"}}]}`
	q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, d.tcp()+"/api/turns/"+turnID+"/calls", strings.NewReader(body))
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("traceparent", headerTrace)
	response, err := http.DefaultClient.Do(q)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v: %+v", err, response)
	}
	response.Body.Close()
	results := w.results(turnID)
	if _, err := w.mcpClient(mcpVersions[0], nil).CallTool(wait.Context(t), &mcpsdk.CallToolParams{
		Meta: mcpsdk.Meta{"traceparent": mcpTrace}, Name: "lines", Arguments: map[string]string{"text": "x"},
	}); err != nil {
		t.Error(err)
	}
	d.signal(syscall.SIGTERM)
	if code := d.code(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	lines := c.find("execute_tool lines", bytes.Repeat([]byte{0x11}, 8))
	work := c.find("execute_tool work", bytes.Repeat([]byte{0x22}, 8))
	if lines == nil || work == nil {
		t.Fatalf("spans %v", c.spans)
	}
	timing, kill := results["b"].Timing, results["b"].Kill
	for name, want := range map[string]int64{
		"queue": timing.QueueMs, "start": timing.StartMs, "run": timing.RunMs, "kill": timing.GraceMs + kill.LatencyUs/1000,
	} {
		s := c.find(name, work.GetSpanId())
		if s == nil {
			t.Errorf("the call has no span %s", name)
			continue
		}
		late := kill.TermLatencyUs/1000 + 2 // a run ends at the deadline, by the clock
		least := want - late
		if name == "queue" {
			least = 0 // the result's has the wait in the turn, too
		}
		if got := took(s); got < least || got > want+late {
			t.Errorf("%s took %d ms, and the result says %d", name, got, want)
		}
		if s.GetStartTimeUnixNano() < work.GetStartTimeUnixNano() || s.GetEndTimeUnixNano() > work.GetEndTimeUnixNano() {
			t.Errorf("%s is not within its call", name)
		}
	}
	if c.find("execute_tool lines", bytes.Repeat([]byte{0x33}, 8)) == nil {
		t.Error("a call over MCP has another parent")
	}
	if c.find("run", lines.GetSpanId()) == nil || c.find("kill", lines.GetSpanId()) != nil {
		t.Error("a call that ended by itself has other spans")
	}
	if bytes.Contains(c.raw, []byte("s3cret")) {
		t.Error("arguments or output have been sent")
	}
}

// results are those on record of a turn, by call.
func (w *world) results(turnID string) map[string]*api.Result {
	w.t.Helper()
	all := map[string]*api.Result{}
	for _, id := range []string{"a", "b"} {
		r, err := w.client.PastResult(wait.Context(w.t), turnID, id)
		if err != nil {
			w.t.Fatal(err)
		}
		all[id] = r
	}
	return all
}

// A collector that is not there costs a line in the log, and no more.
func TestNoCollector(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "telemetry: {otlp: {endpoint: \"http://127.0.0.1:1\", protocol: grpc, interval: 100ms, timeout: 500ms}}\n")
	d := w.daemon()
	w.mustRun(w.begin(), "lines", map[string]string{"text": "x"})
	d.waitLog("telemetry cannot be sent")
	d.signal(syscall.SIGTERM)
	if code := d.code(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// What cannot be sent anywhere keeps the daemon from its start.
func TestWrongTelemetry(t *testing.T) {
	t.Parallel()
	for added, want := range map[string]string{
		"telemetry: {otlp: {endpoint: nowhere}}\n": "is not a URL of a collector",
		"secrets: {two: {file: toolhost.yaml}}\ntelemetry: {otlp: {endpoint: \"http://127.0.0.1:1\", headers: {k: two}}}\n": "it has several lines",
	} {
		w := newWorld(t, added)
		d := w.command().start()
		if code := d.code(); code != 1 || !strings.Contains(d.log.text(), want) {
			t.Errorf("%s: exit status %d: %s", added, code, d.log.text())
		}
	}
}

// A server that was not described may have a tool of any name: that makes no
// label of what a model asks for.
func TestOnlyToolsForCertainAreLabels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolhost.yaml")
	if err := os.WriteFile(file, []byte("tools:\n  own: {command: [echo]}\n  server: {mcp: [cat]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	machine, err := config.ThisMachine()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Options{Path: file, Machine: &machine})
	if err != nil {
		t.Fatal(err)
	}
	all := &tools{}
	all.current.Store(all.snapshot(loaded))
	for name, want := range map[string]bool{"own": true, "server": false, "server__anything": false, "nothing": false} {
		if got := all.offers(name); got != want {
			t.Errorf("%s is offered: %v", name, got)
		}
	}
	if _, ok := all.tool("server__anything"); !ok {
		t.Error("a call of what a server may have is not let through to its reason")
	}
}
