package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor"
)

func TestOK(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := call(t, host, request("echo", `{"text":"hello"}`))
	wantStatus(t, r, api.StatusOK)
	if r.Text() != "hello" || string(r.Structured) != `{"n":0}` {
		t.Errorf("text %q, structured %s", r.Text(), r.Structured)
	}
	if r.Code != "OK" || r.Partial || r.Kill.Stage != "none" || len(r.SHA256) != 64 || r.Message != "" || r.Exit.Signal != "" {
		t.Errorf("result: %+v", r)
	}
	if !strings.Contains(strings.Join(r.Sandbox.Enforced, " "), "cgroup.memory") {
		t.Errorf("receipt: %+v", r.Sandbox)
	}
}

func TestOutcomes(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for _, test := range []struct {
		name, tool, arguments string
		want                  api.Status
		toolError             string
	}{
		{"error", "fail", `{}`, api.StatusToolError, "no luck today"},
		{"panic", "panic", `{}`, api.StatusToolError, "panic: oh dear"},
		{"goexit", "goexit", `{}`, api.StatusToolError, "runtime.Goexit"},
		{"question", "ask", `{}`, api.StatusToolError, "denied: headless"},
		{"exit 0", "exit", `{"n":0}`, api.StatusNoResult, ""},
		{"exit 3", "exit", `{"n":3}`, api.StatusCrashed, ""},
		{"killed by itself", "signal", `{"n":9}`, api.StatusCrashed, ""},
		{"wrong type", "echo", `{"text":5}`, api.StatusInvalidArgs, "text"},
		{"unknown argument", "echo", `{"colour":"red"}`, api.StatusInvalidArgs, "colour"},
		{"no JSON", "echo", `{"text":`, api.StatusInvalidArgs, ""},
		{"no object", "echo", `[1]`, api.StatusInvalidArgs, ""},
		{"too large", "echo", `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, api.StatusInvalidArgs, "1048576"},
		{"no such tool", "nosuch", `{}`, api.StatusStartFailed, "nosuch"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := call(t, host, request(test.tool, test.arguments))
			wantStatus(t, r, test.want)
			if test.toolError != "" && !strings.Contains(r.ToolError.Message, test.toolError) {
				t.Errorf("tool error %q, want %q in it", r.ToolError.Message, test.toolError)
			}
			if r.Message == "" || r.Kill.Cause != "" {
				t.Errorf("message %q, cause %q", r.Message, r.Kill.Cause)
			}
		})
	}
}

func TestPanicKeepsItsStack(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := call(t, host, request("panic", `{}`))
	if r.ToolError == nil || !strings.Contains(r.ToolError.Stack, "goroutine") {
		t.Errorf("tool error %+v", r.ToolError)
	}
}

func TestTimeoutKeepsWhatWasFlushed(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	events := make(chan api.Event, 10000)
	r := request("stream", `{"n":3000}`)
	r.Timeouts, r.Events = within(12*time.Second), events
	result := call(t, host, r)
	wantStatus(t, result, api.StatusTimeout)
	var want strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&want, "message %d\n", i)
	}
	if result.Text() != want.String() {
		t.Errorf("kept %d bytes, want %d, in order", len(result.Text()), want.Len())
	}
	k := result.Kill
	if !result.Partial || !result.Overran || k.Stage != "kill" || k.Cause != "deadline" || k.Reaped != 1 || result.Exit.Signal != "SIGKILL" {
		t.Errorf("partial %v, overran %v, kill %+v, exit %+v", result.Partial, result.Overran, k, result.Exit)
	}
	if !strings.HasPrefix(result.Message, "[TIMEOUT] ") || strings.Contains(result.Message, "may still be running") {
		t.Errorf("message %q", result.Message)
	}
	if result.Timing.Source != "global" || result.Timing.SourceDetail != "test" || *result.Timing.TimeoutMs != 12_000 {
		t.Errorf("timing %+v", result.Timing)
	}
	checkGrammar(t, events)
}

// checkGrammar: queued, started if it started, others, one of finished and
// failed at the end.
func checkGrammar(t *testing.T, events chan api.Event) {
	t.Helper()
	var kinds []string
	for len(events) > 0 {
		kinds = append(kinds, string((<-events).Kind))
	}
	if len(kinds) < 3 || kinds[0] != "tool_queued" || kinds[1] != "tool_started" {
		t.Fatalf("events begin with %v", kinds[:min(len(kinds), 3)])
	}
	ends := 0
	for _, kind := range kinds {
		if kind == "tool_finished" || kind == "tool_failed" {
			ends++
		}
	}
	if last := kinds[len(kinds)-1]; ends != 1 || last != "tool_finished" && last != "tool_failed" {
		t.Errorf("%d ends, last event %s", ends, last)
	}
}

func TestResultDuringGraceCounts(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	events := make(chan api.Event, 100)
	r := request("late", `{"n":5}`)
	r.Grace, r.Events = 20*time.Second, events
	running := host.Start(t.Context(), r)
	waitFor(t, events, api.EventStarted)
	running.Abort(api.ReasonUser)
	result := running.Result()
	wantStatus(t, result, api.StatusOK)
	if result.Kill.Cause != "abort" || result.Kill.Stage != "term" || string(result.Structured) != `{"n":5}` || result.Text() != "just in time" {
		t.Errorf("kill %+v, structured %s, text %q", result.Kill, result.Structured, result.Text())
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	r := request("silent", `{}`)
	r.Stream, r.Grace = budget.Stream{Initial: 50 * time.Millisecond}, budget.NoGrace
	result := call(t, host, r)
	wantStatus(t, result, api.StatusTimeout)
	if result.Reason != "idle" || result.Kill.Cause != "idle" || result.Timing.SilenceLimitMs != 50 || !strings.Contains(result.Message, " because it had sent nothing for 0.05s (its whole limit is 60s)") {
		t.Errorf("reason %q, cause %q, limit %d: %s", result.Reason, result.Kill.Cause, result.Timing.SilenceLimitMs, result.Message)
	}
	r = request("beat", `{"n":20}`)
	r.Stream = budget.Stream{Gap: 10 * time.Second}
	wantStatus(t, call(t, host, r), api.StatusOK)
}

func TestAbort(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	events := make(chan api.Event, 100)
	r := request("wait", `{}`)
	r.Events, r.Grace = events, 20*time.Second
	c := host.Start(t.Context(), r)
	waitFor(t, events, api.EventOutput)
	c.Abort(api.ReasonUser)
	result := c.Result()
	wantStatus(t, result, api.StatusCancelled)
	if result.Reason != "user" || !strings.HasPrefix(result.Message, "[CANCELLED] ") || result.Text() != "waiting" || result.ToolError.Kind != "cancelled" {
		t.Errorf("reason %q, message %q, text %q, tool error %+v", result.Reason, result.Message, result.Text(), result.ToolError)
	}
	c.Abort(api.ReasonUser) // after the end: nothing
}

func TestSecondAbortKillsAtOnce(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	events := make(chan api.Event, 100)
	r := request("stream", `{"n":1}`)
	r.Events, r.Grace = events, 29*time.Second
	c := host.Start(t.Context(), r)
	waitFor(t, events, api.EventProgress)
	c.Abort(api.ReasonUser)
	c.Abort(api.ReasonUser)
	result := c.Result()
	wantStatus(t, result, api.StatusCancelled)
	if result.Kill.Stage != "kill" || result.Timing.GraceMs >= 29000 {
		t.Errorf("kill %+v after %d ms of grace", result.Kill, result.Timing.GraceMs)
	}
}

func TestContextAborts(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	result := host.Call(ctx, request("silent", `{}`))
	if result.Status != api.StatusCancelled || result.Retry.SideEffects != "none" || result.Usage.PidsPeak > 0 {
		t.Errorf("status %s (%s), usage %+v", result.Status, result.Message, result.Usage)
	}
}

// waitFor waits for an event of a kind; of progress, for the tool's own report
// and not the beat of a long call.
func waitFor(t *testing.T, events <-chan api.Event, kind api.EventKind) {
	t.Helper()
	limit := time.After(hangLimit)
	for {
		select {
		case e := <-events:
			if e.Kind == kind && (kind != api.EventProgress || e.Message != "") {
				return
			}
		case <-limit:
			t.Fatalf("no %s event", kind)
		}
	}
}

func TestOOM(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	limits := supervisor.Limits{MemoryBytes: 96 << 20}
	for _, r := range []supervisor.Request{request("memory", `{"n":512}`), request("children", `{"n":1,"text":"memory"}`)} {
		r.Limits = limits
		result := call(t, host, r)
		wantStatus(t, result, api.StatusOOM)
		if result.Usage.OOMEvents == 0 || !strings.HasPrefix(result.Message, "[OOM]") {
			t.Errorf("usage %+v, message %q", result.Usage, result.Message)
		}
	}
}

// Who is killed for the sake of all is not to blame, and did not crash.
func TestOOMOfTheTotal(t *testing.T) {
	host := newHost(t, supervisor.Config{Totals: cgroup.Limits{MemoryBytes: 160 << 20}})
	for _, r := range []supervisor.Request{request("memory", `{"n":512}`), request("children", `{"n":1,"text":"memory"}`)} {
		r.Limits = supervisor.Limits{MemoryBytes: 4 << 30}
		result := call(t, host, r)
		wantStatus(t, result, api.StatusOOM)
		if result.Reason != "hostMemory" || result.Usage.AncestorOOMKills == 0 || !strings.HasPrefix(result.Message, "[OOM]") {
			t.Errorf("reason %q, usage %+v, message %q", result.Reason, result.Usage, result.Message)
		}
	}
}

// So with what the calls of one owner may have together; those of another go on.
func TestOOMOfAShare(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	of := func(key, args string) supervisor.Request {
		r := request("memory", args)
		r.Limits, r.Share = supervisor.Limits{MemoryBytes: 4 << 30}, supervisor.Share{Key: key, MemoryBytes: 160 << 20, CPUPercent: 100}
		return r
	}
	result := call(t, host, of("greedy", `{"n":512}`))
	wantStatus(t, result, api.StatusOOM)
	if result.Reason != api.ReasonShareMemory || result.Usage.AncestorOOMKills == 0 || !strings.Contains(result.Message, "access: quota: memory") {
		t.Errorf("reason %q, usage %+v, message %q", result.Reason, result.Usage, result.Message)
	}
	if result := call(t, host, of("quiet", `{"n":16}`)); result.Reason == api.ReasonShareMemory {
		t.Errorf("reason %q, message %q", result.Reason, result.Message)
	}
}

func TestPidsLimitIsInTheEvidence(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("crowd", `{}`)
	r.Limits = supervisor.Limits{Pids: 64}
	result := call(t, host, r)
	if wantStatus(t, result, api.StatusPidsLimit); result.Usage.PidsLimitHits == 0 || result.Limits.Pids != 64 {
		t.Errorf("status %s, usage %+v", result.Status, result.Usage)
	}
}

func TestCPUTime(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("burn", `{}`)
	r.Limits, r.Grace = supervisor.Limits{CPUTime: 300 * time.Millisecond}, budget.NoGrace
	result := call(t, host, r)
	wantStatus(t, result, api.StatusCPULimit)
	if used := result.Usage.CPUUserMs + result.Usage.CPUSystemMs; used < 290 {
		t.Errorf("killed after %d ms of CPU time, before its limit", used)
	}
}

func TestOutputTotal(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("flood", `{"n":100}`)
	r.Limits, r.Grace = supervisor.Limits{OutputTotalBytes: 5 << 20}, budget.NoGrace
	wantStatus(t, call(t, host, r), api.StatusOutputLimit)
}

func TestFloodIsBoundedAndCounted(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	mib := times(64, 128, 1024)
	for _, lines := range []bool{false, true} {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		result := call(t, host, request("flood", fmt.Sprintf(`{"n":%d,"line":%v}`, mib, lines)))
		runtime.GC() // what is not freed yet is not kept
		runtime.ReadMemStats(&after)
		wantStatus(t, result, api.StatusOK)
		out := result.Output.Stdout
		if out.SeenBytes != int64(mib)<<20 || out.KeptBytes != 1<<20 || out.DroppedBytes != out.SeenBytes-out.KeptBytes {
			t.Errorf("seen %d, kept %d, dropped %d", out.SeenBytes, out.KeptBytes, out.DroppedBytes)
		}
		if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 4<<20+2*1<<20 {
			t.Errorf("heap grew by %d bytes, the result's own %d included", grown, len(out.Head)+len(out.Tail))
		}
	}
}

func TestStdioOfPlugin(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	result := call(t, host, request("noisy", `{"text":"a\u0007b"}`))
	wantStatus(t, result, api.StatusOK)
	if result.Output.Stdout.Head != "to stdout: a\u0007b\n" || result.Output.Stderr.Head != "to stderr: a\u0007b\n" {
		t.Errorf("output %+v", result.Output)
	}
}

// What a tool sets of its stdin, no other one sees.
func TestStdinOfPlugin(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for range 2 {
		result := call(t, host, request("stdin", `{"n":10}`))
		wantStatus(t, result, api.StatusOK)
		if string(result.Structured) != `{"n":0}` {
			t.Errorf("signal %s was set before", result.Structured)
		}
	}
}

// The model's own wish for a timeout comes in by the declared argument or by
// _meta, and is clamped.
func TestTimeoutHint(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("echo", `{"n":5000,"_meta":{"x":1}}`)
	r.Timeouts = nil
	result := call(t, host, r)
	wantStatus(t, result, api.StatusOK)
	if *result.Timing.TimeoutMs != 5000 || result.Timing.Source != "call" {
		t.Errorf("timing %+v", result.Timing)
	}
	r = request("fail", `{}`)
	r.Timeouts, r.Meta = nil, json.RawMessage(`{"dev.toolhost/timeoutMs":5}`)
	result = call(t, host, r)
	if *result.Timing.TimeoutMs != 1000 || !result.Timing.Clamped || len(result.Warnings) == 0 {
		t.Errorf("timing %+v, warnings %q", result.Timing, result.Warnings)
	}
}

// A soft budget in _meta is read as a timeout is, and told of where it cannot be.
func TestSoftBudgetHint(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("echo", `{}`)
	r.Meta = json.RawMessage(`{"dev.toolhost/softBudgetMs":1e2}`)
	if result := call(t, host, r); result.Timing.SoftBudgetMs != 100 || len(result.Warnings) != 0 {
		t.Errorf("timing %+v, warnings %q", result.Timing, result.Warnings)
	}
	r.Meta = json.RawMessage(`{"dev.toolhost/softBudgetMs":"soon"}`)
	if result := call(t, host, r); len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], `soft budget "soon"`) {
		t.Errorf("warnings %q", result.Warnings)
	}
}

// A deadline may come at any moment of the start.
func TestDeadlineWhileStarting(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	call(t, host, request("echo", `{}`)) // describes the binary
	for i := range 60 {
		r := request("silent", `{}`)
		r.Timeouts, r.Grace = within(time.Duration(i)*400*time.Microsecond+time.Millisecond), time.Millisecond
		wantStatus(t, call(t, host, r), api.StatusTimeout)
	}
}
