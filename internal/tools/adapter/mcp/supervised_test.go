package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/supervisor"
)

func newHost(t testing.TB) *supervisor.Supervisor {
	t.Helper()
	host, err := supervisor.New(t.Context(), supervisor.Config{RuntimeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return host
}

// request calls a tool of an MCP server through this test's binary as adapter.
func request(argv []string, tool, arguments string, policy supervisor.Policy) supervisor.Request {
	return supervisor.Request{
		Tool:      supervisor.Tool{Path: self, Name: tool, Args: argv, Adapter: true},
		Arguments: json.RawMessage(arguments), Sandbox: &policy,
		Timeouts: []budget.Ask{{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: hangLimit, Detail: "test"}},
		Grace:    5 * time.Second,
	}
}

func run(t testing.TB, host *supervisor.Supervisor, r supervisor.Request) *api.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*hangLimit)
	defer cancel()
	result := host.Call(ctx, r)
	if result.Kill.Survivors != 0 {
		t.Errorf("%d survivors", result.Kill.Survivors)
	}
	return result
}

func wordsOf(r *api.Result) string {
	var all []string
	for _, content := range r.Content {
		all = append(all, content.Text)
	}
	return strings.Join(all, "")
}

func wantOK(t testing.TB, r *api.Result, part string) {
	t.Helper()
	if r.Status != api.StatusOK || !strings.Contains(wordsOf(r), part) {
		t.Fatalf("%s, %q; want %q\nmessage: %s\nerror: %+v\nstderr: %s", r.Status, wordsOf(r), part, r.Message, r.ToolError, r.Output.Stderr.Head)
	}
}

// enough gives the call a timeout in which its server starts, on this machine
// as it is now, and does something.
func enough(t testing.TB, host *supervisor.Supervisor, r, quick supervisor.Request) supervisor.Request {
	t.Helper()
	start := time.Now()
	wantOK(t, run(t, host, quick), "")
	timeout := 3*time.Since(start) + time.Second
	r.Timeouts = append(r.Timeouts, budget.Ask{Layer: budget.LayerCall, Timeout: timeout, Detail: "test"})
	return r
}

func TestFilesystemServer(t *testing.T) {
	stage.Of(t, "interop")
	t.Parallel()
	granted, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{granted, other} {
		if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("noted in "+dir), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := newHost(t)
	argv, node := npmServer(t, "filesystem", granted, "/")
	policy := supervisor.Policy{Read: []string{node, granted}}
	call := func(tool string, arguments map[string]string) *api.Result {
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		return run(t, host, request(argv, tool, string(raw), policy))
	}
	wantOK(t, call("read_text_file", map[string]string{"path": granted + "/note.txt"}), "noted in "+granted)
	if r := call("read_text_file", map[string]string{"path": other + "/note.txt"}); r.Status != api.StatusToolError || !strings.Contains(r.ToolError.Message, "ENOENT") {
		t.Errorf("read what was not granted: %s, %+v", r.Status, r.ToolError)
	}
	if r := call("write_file", map[string]string{"path": granted + "/new.txt", "content": "x"}); r.Status != api.StatusToolError || !strings.Contains(r.ToolError.Message, "EROFS") {
		t.Errorf("wrote where it may only read: %s, %+v", r.Status, r.ToolError)
	}
	policy.Read, policy.Write = []string{node}, []string{granted}
	wantOK(t, call("write_file", map[string]string{"path": granted + "/new.txt", "content": "written"}), "Successfully")
	if data, err := os.ReadFile(granted + "/new.txt"); err != nil || string(data) != "written" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if r := call("read_text_file", map[string]string{}); r.Status != api.StatusInvalidArgs {
		t.Errorf("no path: %s, %s", r.Status, r.Message)
	}
}

func TestMemoryServer(t *testing.T) {
	stage.Of(t, "interop")
	t.Parallel()
	data := t.TempDir()
	host := newHost(t)
	argv, node := npmServer(t, "memory")
	policy := supervisor.Policy{Read: []string{node}, Write: []string{data}}
	call := func(tool, arguments string) *api.Result {
		r := request(argv, tool, arguments, policy)
		r.Env = []string{"MEMORY_FILE_PATH=" + data + "/memory.jsonl"}
		return run(t, host, r)
	}
	wantOK(t, call("create_entities", `{"entities":[{"name":"toolhost","entityType":"program","observations":["runs tools"]}]}`), "toolhost")
	r := call("read_graph", `{}`)
	wantOK(t, r, "runs tools")
	if !strings.Contains(string(r.Structured), `"observations"`) {
		t.Errorf("structured %s", r.Structured)
	}
}

func TestEverythingServer(t *testing.T) {
	stage.Of(t, "interop")
	t.Parallel()
	host := newHost(t)
	argv, node := npmServer(t, "everything")
	policy := supervisor.Policy{Read: []string{node}}
	d, failed := host.Describe(t.Context(), request(argv, "", "", policy))
	if failed != nil {
		t.Fatalf("%s: %s\n%s", failed.Status, failed.Message, failed.Output.Stderr.Head)
	}
	var names []string
	for _, tool := range d.Tools {
		names = append(names, tool.GetName())
	}
	for _, name := range []string{"echo", "get-sum", "get-tiny-image", "get-structured-content", "trigger-long-running-operation"} {
		if !slices.Contains(names, name) {
			t.Fatalf("no tool %s in %v", name, names)
		}
	}
	wantOK(t, run(t, host, request(argv, "echo", `{"message":"hello"}`, policy)), "Echo: hello")
	image := run(t, host, request(argv, "get-tiny-image", `{}`, policy))
	if !slices.ContainsFunc(image.Content, func(c api.Content) bool { return c.MIMEType == "image/png" && len(c.Data) > 100 }) {
		t.Errorf("no image in %+v", image)
	}
	weather := run(t, host, request(argv, "get-structured-content", `{"location":"New York"}`, policy))
	if !json.Valid(weather.Structured) || !strings.Contains(string(weather.Structured), "temperature") {
		t.Errorf("structured %s", weather.Structured)
	}
	t.Logf("limits: %d pids, %d bytes at most", weather.Usage.PidsPeak, weather.Usage.MemoryPeakBytes)
}

// A tool that takes too long is stopped for certain, with how far it was as the
// partial result, and leaves nothing behind.
func TestALongOperationIsStopped(t *testing.T) {
	stage.Of(t, "interop")
	host := newHost(t)
	mark := "mark-" + rand.Text()
	argv, node := npmServer(t, "everything", "stdio", mark)
	policy := supervisor.Policy{Read: []string{node}}
	echo := request(argv, "echo", `{"message":"hello"}`, policy)
	events := make(chan api.Event, 1000)
	r := enough(t, host, request(argv, "trigger-long-running-operation", `{"duration":600,"steps":3000}`, policy), echo)
	r.Events = events
	stopped := run(t, host, r)
	if stopped.Status != api.StatusTimeout || !stopped.Partial || !strings.Contains(wordsOf(stopped), "of 3000") {
		t.Errorf("%s, partial %t: %q, %s\nstderr: %s", stopped.Status, stopped.Partial, wordsOf(stopped), stopped.Message, stopped.Output.Stderr.Head)
	}
	close(events)
	progress := 0
	for event := range events {
		if event.Kind == api.EventProgress && event.Fraction != nil {
			progress++
		}
	}
	if progress == 0 {
		t.Error("no event of its progress")
	}
	if left := processes.WithArguments(mark); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	wantOK(t, run(t, host, echo), "Echo: hello")
}

// What a server's failure is for the adapter, it is for the host too.
func TestTypedFailures(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	for _, test := range []struct {
		role   string
		status api.Status
		want   string // part of the tool's error
	}{
		{"dies at start", api.StatusStartFailed, "Cannot find module"},
		{"only bad tools", api.StatusStartFailed, "no tools that can be used"},
		{"dies in call", api.StatusCrashed, "exited with status 4"},
		{"garbage in call", api.StatusProtocolError, "not JSON-RPC"},
		{"refuses call", api.StatusInvalidArgs, "no tool of that name"},
	} {
		r := run(t, host, request(argv(test.role), "plain", `{}`, unconfined))
		if r.Status != test.status || r.ToolError == nil || !strings.Contains(r.ToolError.Message, test.want) {
			t.Errorf("%s: %s (%s), %+v, want %s and %q\nmessage: %s\nstderr: %s", test.role, r.Status, r.Reason, r.ToolError, test.status, test.want, r.Message, r.Output.Stderr.Head)
		}
		t.Log(r.Message)
	}
	r := request([]string{"/no/such/server"}, "plain", `{}`, unconfined)
	if result := run(t, host, r); result.Status != api.StatusStartFailed || !strings.Contains(result.Message, "/no/such/server") {
		t.Errorf("no server: %s, %s", result.Status, result.Message)
	}
}

// What a kept server has started that died in a call ends with that call: the next one
// has another process.
func TestADeadServersProcessesEnd(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	for range 2 {
		r := request(argv("dies and leaves"), "plain", `{}`, unconfined)
		r.Keep = &supervisor.Keep{}
		got := run(t, host, r)
		if got.Status != api.StatusCrashed || got.Instance != api.InstanceFresh || got.Kill.Reaped == 0 || got.Kill.Survivors != 0 {
			t.Errorf("%s of a %s process, %+v: %s", got.Status, got.Instance, got.Kill, got.Message)
		}
	}
	if kept := host.Host().Kept; kept != 0 {
		t.Errorf("%d processes are kept", kept)
	}
}

// A server that takes every task there is leaves the adapter what it needs, and
// the adapter's own do not count.
func TestServerTakesAllTasks(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	const limit = 48
	for range 3 {
		r := request(argv("takes all tasks"), "plain", `{}`, unconfined)
		r.Limits.Pids = limit
		got := run(t, host, r)
		wantOK(t, got, "no task left")
		if got.Usage.PidsPeak < limit || got.Usage.PidsLimitHits == 0 {
			t.Errorf("%+v", got.Usage)
		}
	}
}
