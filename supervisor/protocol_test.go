package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

func hostileRequest(how string) supervisor.Request {
	return supervisor.Request{
		Tool:     supervisor.Tool{Path: self, Name: "hostile", Args: []string{how}},
		Timeouts: within(20 * time.Second), Grace: budget.NoGrace,
	}
}

// unhurriedRequest is one whose tool is read at length, which the race detector makes slow.
func unhurriedRequest(how string) supervisor.Request {
	r := hostileRequest(how)
	r.Timeouts = within(2 * time.Minute)
	return r
}

func TestBrokenHandshakes(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	for status, cases := range map[api.Status]map[string]string{api.StatusStartFailed: {
		"notplugin": "hello, world",
		"exit":      "handshake",
		"wrapper":   "process ended before its handshake, and another one holds its output",
		"endless":   "longer than",
		"version":   `version "99"`,
		"tcp":       "outside the call's socket folder",
		"elsewhere": "outside the call's socket folder",
		"dotdot":    "outside the call's socket folder",
		"link":      "cannot connect",
		"nosocket":  "not a socket",
		"cert":      "cannot connect",
	}, api.StatusProtocolError: {
		// No gRPC behind it:
		"mute":   "socket x answered nothing within 7s, which is not gRPC: serve toolhost.plugin.v1 on it before the handshake line is printed, as plugin.Serve does; its last words on stderr: listening",
		"babble": `answered with "HTTP/1.1 400 Bad Request", which is not gRPC`,
		"hangup": "closed the connection before its result, and lives on",
		// In Describe:
		"describe-none": "0 tools", "describe-twice": "twice", "describe-schema": "schema",
		"describe-output": "output schema of tool", "describe-array": `not of "type": "object"`, "describe-bytes": "not UTF-8",
		"describe-lines": "all of them printable", "describe-pattern": "more than 20000 instructions", "describe-parts": "more than 128 MiB",
	}} {
		for how, want := range cases {
			t.Run(how, func(t *testing.T) {
				r := call(t, host, hostileRequest(how))
				wantStatus(t, r, status)
				if r.Exit.Signal != "" { // that would be of the clean-up
					t.Errorf("exit %+v", r.Exit)
				}
				if !strings.Contains(r.ToolError.Message, want) || strings.Contains(strings.TrimSpace(r.ToolError.Message), "\n") {
					t.Errorf("error %q, want one line with %q", r.ToolError.Message, want)
				}
			})
		}
	}
}

// What did not start in time is called by its label, for its path may be that of
// an adapter.
func TestALateStartNamesWhatIsLate(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	r := hostileRequest("describe-hang")
	r.Tool.Label, r.Timeouts = "the server of Alice", within(10*time.Second)
	got := call(t, host, r)
	wantStatus(t, got, api.StatusTimeout)
	if !strings.HasPrefix(got.ToolError.Message, "the server of Alice cannot be described: it has not answered within ") {
		t.Errorf("error %q", got.ToolError.Message)
	}
	if !strings.HasPrefix(got.Message, `[TIMEOUT] Tool "hostile" was not ready in time: the server of Alice`) || !strings.HasSuffix(got.Message, "Next: give its start more time, or see why it is slow.") {
		t.Errorf("message %q", got.Message)
	}
}

// The operator's word on a tool's start and on Describe holds, however long its
// calls may take.
func TestProfilesOfTheOperator(t *testing.T) {
	t.Parallel()
	two := []budget.Ask{{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: 2 * time.Second}}
	host := newHost(t, supervisor.Config{Profiles: map[string][]budget.Ask{budget.Registration: two}})
	late := call(t, host, hostileRequest("late"))
	wantStatus(t, late, api.StatusStartFailed)
	if !strings.Contains(late.ToolError.Message, "has not answered within 2s of its start: give it more with timeouts.registration") {
		t.Errorf("error %q", late.ToolError.Message)
	}
	host = newHost(t, supervisor.Config{Profiles: map[string][]budget.Ask{budget.MessageRoute: two}})
	hung := call(t, host, hostileRequest("describe-hang"))
	wantStatus(t, hung, api.StatusTimeout)
	if hung.Timing.ElapsedMs > 9_000 { // the standard is 10 s
		t.Errorf("described for %d ms", hung.Timing.ElapsedMs)
	}
}

// A tool that fails to start is not a failure of the host's, and the other way round.
func TestTheReasonTellsWhoHasFailedToStart(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	if r := call(t, host, hostileRequest("exit")); r.Status != api.StatusStartFailed || r.Reason != "start" {
		t.Errorf("a tool without a handshake: %s, reason %q", r.Status, r.Reason)
	}
	program := filepath.Join(t.TempDir(), "of-no-machine")
	if err := os.WriteFile(program, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := call(t, host, supervisor.Request{Tool: supervisor.Tool{Path: program}}); r.Status != api.StatusStartFailed || r.Reason != "not_executable" {
		t.Errorf("a tool of no machine: %s, reason %q", r.Status, r.Reason)
	}
}

// A hint that cannot be a duration is left out, and people are told.
func TestHintsOfSenselessDurations(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	r := hostileRequest("describe-hints")
	r.Timeouts = nil
	d, err := host.Describe(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	hints := d.Tools[0].GetTimeouts()
	if hints.GetTimeoutMs() != 0 || hints.GetSoftBudgetMs() != 0 || hints.GetGapMs() != 5 || len(d.Warnings) != 2 || !strings.Contains(d.Warnings[0], "its hint of a timeout: it is 9223372036854775807 ms, want 0 to 31622400000") {
		t.Errorf("%v, warnings %q", hints, d.Warnings)
	}
	got := call(t, host, r)
	wantStatus(t, got, api.StatusOK)
	if *got.Timing.TimeoutMs != 30_000 || got.Timing.Source != "standard" {
		t.Errorf("a timeout of %d ms by %s", *got.Timing.TimeoutMs, got.Timing.Source)
	}
}

// A tool whose connection the host has ended has not crashed, whatever it makes of that.
func TestAFloodOfPings(t *testing.T) {
	t.Parallel()
	r := call(t, newHost(t, supervisor.Config{}), hostileRequest("pings"))
	if r.Status != api.StatusProtocolError || !strings.Contains(r.ToolError.Message, "does not read the replies that it has asked for") {
		t.Errorf("%s (%s): %s", r.Status, r.Reason, r.Message)
	}
}

// That it has not started, or was ended by the sandbox, is nothing that a tool which ran
// can say of itself: only toolhost's own adapters say it, of what they run.
func TestAToolThatRanHasNotFailedToStart(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	for claim, want := range map[string]api.Status{
		"claim-KIND_COMMAND_NOT_FOUND": api.StatusToolError, "claim-KIND_COMMAND_NOT_EXECUTABLE": api.StatusToolError,
		"claim-KIND_START_FAILED": api.StatusToolError, "claim-SIGSYS": api.StatusCrashed, "describe-claim": api.StatusStartFailed,
	} {
		r := call(t, host, hostileRequest(claim))
		if r.Status != want || r.Retry.SideEffects != "possible" || r.Retry.Retryable || !strings.Contains(r.Message, "Side effects may have happened.") {
			t.Errorf("%s: %s (%s), %+v: %s", claim, r.Status, r.Reason, r.Retry, r.Message)
		}
	}
}

func TestBrokenProtocol(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	for how, want := range map[string]string{
		"second-result": "a second result",
		"after-result":  "data after the result",
		"lying-seq":     "event 7 came after event 1",
		"huge":          "too large",
		"empty-event":   "event 2 holds nothing",
		"bad-json":      "not valid JSON",
		"no-result":     "without a result",
	} {
		t.Run(how, func(t *testing.T) {
			r := call(t, host, hostileRequest(how))
			wantStatus(t, r, api.StatusProtocolError)
			if !strings.Contains(r.ToolError.Message, want) || !strings.HasPrefix(r.Text(), "kept ") || !r.Partial {
				t.Errorf("error %q, text %q, partial %v", r.ToolError.Message, r.Text(), r.Partial)
			}
		})
	}
}

func TestHostileButOK(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	for _, how := range []string{"ok", "forgedlog", "result-hang", "flush-flood"} {
		t.Run(how, func(t *testing.T) {
			r := call(t, host, hostileRequest(how))
			wantStatus(t, r, api.StatusOK)
		})
	}
}

func TestQuestionFloodEnds(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	r := hostileRequest("ask-flood")
	r.Ask = func(ctx context.Context, _ supervisor.Question) supervisor.Answer {
		<-ctx.Done()
		return supervisor.Answer{Denied: api.OutcomeFailed}
	}
	result := call(t, host, r)
	if wantStatus(t, result, api.StatusProtocolError); result.Reason != api.ReasonTooManyQuestions {
		t.Errorf("reason %q", result.Reason)
	}
}

func TestMissingTools(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	dir := t.TempDir()
	plain := dir + "/plain"
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	garbage := dir + "/garbage"
	if err := os.WriteFile(garbage, []byte("\x7fELF garbage"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/nonexistent/tool": "no tool at /nonexistent/tool: build it",
		dir:                 "is a folder",
		plain:               "not executable: run chmod +x",
		garbage:             "cannot execute",
		"nosuchtool-xyz":    `no tool "nosuchtool-xyz" in PATH`,
		"":                  "no tool given",
	} {
		r := call(t, host, supervisor.Request{Tool: supervisor.Tool{Path: path}})
		wantStatus(t, r, api.StatusStartFailed)
		if !strings.Contains(r.ToolError.Message, want) || strings.Contains(r.ToolError.Message, "\n") {
			t.Errorf("%q: error %q, want %q in it", path, r.ToolError.Message, want)
		}
	}
	r := request("echo", `{}`)
	r.SHA256 = strings.Repeat("0", 64)
	wantStatus(t, call(t, host, r), api.StatusPolicyViolation)
}

func TestBadConfig(t *testing.T) {
	for _, config := range []supervisor.Config{
		{Limits: supervisor.Limits{MemoryBytes: -1}},
		{Limits: supervisor.Limits{Pids: -5}},
		{Limits: supervisor.Limits{OutputBytes: -5}},
		{Limits: supervisor.Limits{OutputBytes: 1 << 40}},
		{Limits: supervisor.Limits{CPUPercent: 1 << 60}},
		{Admission: supervisor.Admission{Running: -1}},
		{CgroupParent: "/no/such/cgroup"},
		{RuntimeDir: "/proc/nothing"},
	} {
		host, err := supervisor.New(t.Context(), config)
		if err == nil {
			host.Close()
			t.Errorf("%+v: no error", config)
			continue
		}
		if strings.Contains(strings.TrimSpace(err.Error()), "\n") {
			t.Errorf("error of several lines: %v", err)
		}
		t.Log(err)
	}
}

func TestOverload(t *testing.T) {
	host := newHost(t, supervisor.Config{Admission: supervisor.Admission{Running: 1, Queue: 1, Wait: 50 * time.Millisecond}})
	events := make(chan api.Event, 100)
	r := request("silent", `{}`)
	r.Events, r.Grace = events, budget.NoGrace
	first := host.Start(t.Context(), r)
	waitFor(t, events, api.EventStarted)
	waited := host.Call(t.Context(), request("echo", `{}`))
	if waited.Status != api.StatusOverloaded || !waited.Retry.Retryable || waited.Timing.QueueMs < 50 {
		t.Errorf("status %s, retry %+v, timing %+v", waited.Status, waited.Retry, waited.Timing)
	}
	first.Abort(api.ReasonUser)
	first.Result()
	eventually(t, "the slot is free", func() bool { return host.Host().Running == 0 }) // somewhat after the answer
	wantStatus(t, call(t, host, request("echo", `{}`)), api.StatusOK)
}
