//go:build !nofleet

package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/internal/fleetops"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// spans are those that a collector has taken, by the service that sent them.
type spans struct {
	mu   sync.Mutex
	list map[string][]*tracepb.Span
}

func (s *spans) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	raw, err := io.ReadAll(q.Body)
	in := &collectortrace.ExportTraceServiceRequest{}
	if err != nil || q.URL.Path != "/v1/traces" || proto.Unmarshal(raw, in) != nil {
		http.NotFound(w, q)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range in.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() != "service.name" {
				continue
			}
			for _, scope := range of.GetScopeSpans() {
				s.list[a.GetValue().GetStringValue()] = append(s.list[a.GetValue().GetStringValue()], scope.GetSpans()...)
			}
		}
	}
}

// find returns the span of a service with this name and parent, or nil if it is unknown.
func (s *spans) find(service, name string, parent []byte) *tracepb.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.list[service] {
		if span.GetName() == name && bytes.Equal(span.GetParentSpanId(), parent) {
			return span
		}
	}
	return nil
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func newFleetKey(t *testing.T, path string) string {
	t.Helper()
	if err := fleetops.MakeKey(path); err != nil {
		t.Fatal(err)
	}
	key, err := fleet.ReadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	return key.Public()
}

// startWorker starts toolhost worker, and returns when the daemon may give it calls.
func startWorker(t *testing.T, d *served, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(testBinary(t), append([]string{asToolhost, "worker", "--name", "w1"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	log := &lines{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the worker has logged\n%s", log.String())
		}
	})
	wait.Until(t, "the worker takes calls", func() bool {
		list, err := d.Workers(wait.Context(t))
		return err == nil && len(list.Workers) == 1 && list.Workers[0].State == api.WorkerTaking
	})
	return cmd
}

// The trace of a call goes on at the worker, and at the tool that runs there.
func TestTracesOfAWorker(t *testing.T) {
	dir, port := t.TempDir(), freePort(t)
	got := &spans{list: map[string][]*tracepb.Span{}}
	collector := httptest.NewServer(got)
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	w1, caller := filepath.Join(dir, "w1"), filepath.Join(dir, "caller")
	worker, daemon := newFleetKey(t, w1), newFleetKey(t, caller)
	d := serve(t, fmt.Sprintf(`fleet: {listen: "127.0.0.1:%d", key: %s, local: never, workers: {w1: %s}}
tools:
  traced: {command: [sh, -c, 'printf %%s "$$TRACEPARENT"']}
  meta: {command: [sh, -c, 'printf %%s "$$TOOLHOST_META"']}
`, port, caller, worker))
	cmd := startWorker(t, d, []string{"OTEL_SERVICE_NAME=the-worker"},
		"--url", fmt.Sprintf("nats://127.0.0.1:%d", port), "--key", w1, "--caller", daemon, "--dir", filepath.Join(dir, "run"))
	turn, err := d.Begin(wait.Context(t), api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	meta := json.RawMessage(`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`)
	results, err := d.Run(wait.Context(t), turn.TurnID, []api.Call{{ID: "1", Tool: "traced", Meta: meta}, {ID: "2", Tool: "meta", Meta: meta}, {ID: "3", Tool: "traced"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if !r.OK() || r.Where == nil {
			t.Fatalf("%s %+v", r.Message, r.Where)
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it sends what it has
	_ = cmd.Wait()
	var root, below *tracepb.Span
	wait.Until(t, "the daemon's spans have come", func() bool {
		root = got.find("toolhost", "execute_tool traced", mustHex(t, "b7ad6b7169203331"))
		return root != nil && got.find("toolhost", "execute_tool meta", mustHex(t, "b7ad6b7169203331")) != nil && got.find("toolhost", "execute_tool traced", nil) != nil
	})
	if below = got.find("the-worker", "worker traced", root.GetSpanId()); below == nil {
		t.Fatalf("the worker has no span below the daemon's %x: %v", root.GetSpanId(), got.list["the-worker"])
	}
	if !bytes.Equal(below.GetTraceId(), mustHex(t, "0af7651916cd43dd8448eb211c80319c")) || below.GetKind() != tracepb.Span_SPAN_KIND_SERVER {
		t.Errorf("trace %x, kind %s", below.GetTraceId(), below.GetKind())
	}
	for _, name := range []string{"offer", "start", "run", "result"} {
		s := got.find("the-worker", name, below.GetSpanId())
		if s == nil {
			t.Errorf("the worker has no span %s", name)
		} else if s.GetStartTimeUnixNano() < below.GetStartTimeUnixNano() || s.GetEndTimeUnixNano() > below.GetEndTimeUnixNano() {
			t.Errorf("%s is not within its call", name)
		}
	}
	for _, name := range []string{"place", "start", "run"} {
		if got.find("toolhost", name, root.GetSpanId()) == nil {
			t.Errorf("the daemon has no span %s", name)
		}
	}
	if text := results[0].Text(); text != fmt.Sprintf("00-0af7651916cd43dd8448eb211c80319c-%x-01", below.GetSpanId()) {
		t.Errorf("the tool has the trace context %q, and its worker's span is %x", text, below.GetSpanId())
	}
	second := got.find("the-worker", "worker meta", got.find("toolhost", "execute_tool meta", mustHex(t, "b7ad6b7169203331")).GetSpanId())
	if second == nil || !strings.Contains(results[1].Text(), hex.EncodeToString(second.GetSpanId())) {
		t.Errorf("the tool's metadata is %s, and its worker's span %x", results[1].Text(), second.GetSpanId())
	}
	// One without a parent begins a trace, which is the same everywhere.
	alone := got.find("toolhost", "execute_tool traced", nil)
	if there := got.find("the-worker", "worker traced", alone.GetSpanId()); there == nil || !bytes.Equal(there.GetTraceId(), alone.GetTraceId()) {
		t.Errorf("without a parent the daemon has %v, and the worker %v", alone, there)
	}
}

func mustHex(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
