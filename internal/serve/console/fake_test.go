package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// fakes play the supervisor: each call does what its arguments say.
type fakes struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by the name that lets it go
}

type fakeArgs struct {
	// Ms is how long it takes. Hold: until it is aborted, or let go by that name.
	Ms   int    `json:"ms"`
	Hold string `json:"hold"`
	// Grace: it takes a second abort to end.
	Grace bool `json:"grace"`
	// Text is its result, Lines how many lines of output it sends first, each
	// after EveryMs; Steps how often it reports progress, Says what with.
	Text    string `json:"text"`
	Echo    bool   `json:"echo"` // its arguments are its structured result, too
	Lines   int    `json:"lines"`
	EveryMs int    `json:"everyMs"`
	Stderr  string `json:"stderr"`
	Steps   int    `json:"steps"`
	Of      int    `json:"of"`
	Says    string `json:"says"`
	// Question is one of its own; the answer is added to the text.
	Question *supervisor.Question `json:"question"`
	// Status, Reason and Message are how it ends, if not well.
	Status  api.Status `json:"status"`
	Reason  api.Reason `json:"reason"`
	Message string     `json:"message"`
	// Network is what it has reached by its grants.
	Network *api.Network `json:"network"`
	// PeakMiB is what it uses of a limit of 256 MiB, TimeoutMs its timeout.
	PeakMiB   int64 `json:"peakMib"`
	TimeoutMs int64 `json:"timeoutMs"`
}

type fakeCall struct {
	args   fakeArgs
	began  time.Time
	asked  time.Duration // waited for a human
	abort  time.Time
	ctx    context.Context
	aborts chan api.Reason
	done   chan struct{}
	result *api.Result
}

func (c *fakeCall) Abort(r api.Reason) {
	select { // as the real one, it never waits
	case c.aborts <- r:
	default:
	}
}

func (c *fakeCall) Result() *api.Result {
	<-c.done
	return c.result
}

func (f *fakes) start(_ context.Context, r supervisor.Request) turn.Running {
	c := &fakeCall{began: time.Now(), aborts: make(chan api.Reason, 2), done: make(chan struct{})}
	_ = json.Unmarshal(r.Arguments, &c.args)
	if c.args.TimeoutMs == 0 {
		c.args.TimeoutMs = 30_000
	}
	r.Events <- api.Event{Kind: api.EventStarted, TimeoutMs: c.args.TimeoutMs}
	var end context.CancelFunc
	c.ctx, end = context.WithCancel(context.Background())
	go func() {
		defer end()
		defer close(c.done)
		c.result = f.play(c, r)
	}()
	return c
}

// Gone and Current implement turn.Processes.
func (c *fakeCall) Gone() <-chan struct{} { return c.done }

func (c *fakeCall) Current() (cgroup.Current, bool) {
	return cgroup.Current{CPU: time.Since(c.began) / 3, MemoryBytes: max(9, c.args.PeakMiB) << 20, Pids: 3}, true
}

// hold gives the channel that letGo closes.
func (f *fakes) hold(name string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[name] == nil {
		f.held[name] = make(chan struct{})
	}
	return f.held[name]
}

func (f *fakes) letGo(name string) {
	held := f.hold(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	close(held)
	delete(f.held, name)
}

func (f *fakes) play(c *fakeCall, r supervisor.Request) *api.Result {
	a := &c.args
	verdict := supervisor.Verdict{Status: api.StatusOK}
	if a.Status != "" {
		verdict = supervisor.Verdict{Status: a.Status, Reason: a.Reason, Message: a.Message}
	}
	reason := c.talk(r)
	if reason == "" && a.Question != nil {
		began := time.Now()
		answer := r.Ask(c.ctx, *a.Question)
		c.asked = time.Since(began)
		value := string(answer.Value)
		if a.Question.Secret {
			value = fmt.Sprintf("of %d bytes", len(answer.Value))
		}
		a.Text += fmt.Sprintf("value %s, denied %q", value, answer.Denied)
	}
	if reason == "" {
		reason = c.wait(f)
	}
	if reason != "" {
		c.abort = time.Now()
		if a.Grace {
			<-c.aborts
		}
		verdict = supervisor.Verdict{Status: api.StatusCancelled, Reason: reason, Message: "[CANCELLED] The call was cancelled by the user. All its processes were killed."}
	}
	result := c.fill(verdict.Result())
	if a.Network != nil {
		result.Network, result.Sandbox.Network, result.Sandbox.Grants = a.Network, "grants", grantsOf(r.Sandbox)
	}
	if a.Echo {
		result.Structured = r.Arguments
	}
	return result
}

func grantsOf(p *supervisor.Policy) []string {
	if p == nil {
		return nil
	}
	_, grants := p.Reaches()
	return grants
}

// talk sends output and progress, unless an abort comes.
func (c *fakeCall) talk(r supervisor.Request) api.Reason {
	a := &c.args
	if a.Stderr != "" {
		r.Events <- output("stderr", a.Stderr)
	}
	for i := range max(a.Lines, a.Steps) {
		if i < a.Lines {
			r.Events <- output("content", fmt.Sprintf("line %d of %d: %s\n", i+1, a.Lines, a.Says))
		}
		if i < a.Steps {
			part := float64(i+1) / float64(max(a.Of, a.Steps))
			r.Events <- api.Event{Kind: api.EventProgress, Status: api.StatusRunning, Fraction: &part, Message: a.Says}
		}
		if reason := c.pause(time.Duration(a.EveryMs) * time.Millisecond); reason != "" {
			return reason
		}
	}
	return ""
}

func output(stream, text string) api.Event {
	return api.Event{Kind: api.EventOutput, Stream: stream, Content: &api.Content{Type: "text", Text: text}}
}

func (c *fakeCall) pause(d time.Duration) api.Reason {
	select {
	case <-time.After(d):
		return ""
	case reason := <-c.aborts:
		return reason
	}
}

func (c *fakeCall) wait(f *fakes) api.Reason {
	if c.args.Hold == "" {
		return c.pause(time.Duration(c.args.Ms) * time.Millisecond)
	}
	select {
	case <-f.hold(c.args.Hold):
		return ""
	case reason := <-c.aborts:
		return reason
	}
}

// fill makes the result look like a real one.
func (c *fakeCall) fill(r *api.Result) *api.Result {
	a, timeout := &c.args, c.args.TimeoutMs
	r.Content = append(r.Content, api.Content{Type: "text", Text: a.Text})
	r.SHA256 = strings.Repeat("9f2c41d7", 8)
	total := time.Since(c.began)
	t := &r.Timing
	t.StartMs, t.DrainMs, t.HumanWaitMs, t.ElapsedMs = 6, 2, c.asked.Milliseconds(), total.Milliseconds()
	t.TimeoutMs, t.Profile, t.Source, t.SourceDetail, t.SoftBudgetMs, t.GraceLimitMs = &timeout, "tool_call", "global", "toolhost.yaml:12", 10_000, 2000
	if !c.abort.IsZero() {
		t.GraceMs = max(1, time.Since(c.abort).Milliseconds())
		r.Kill = api.Kill{Stage: "kill", Cause: "abort", Signals: []string{"SIGTERM", "SIGKILL"}, Reaped: 3, TermLatencyUs: 210, LatencyUs: 1840}
	}
	t.RunMs = max(0, t.ElapsedMs-t.StartMs-t.DrainMs-t.GraceMs-t.HumanWaitMs)
	r.Usage = api.Usage{CPUUserMs: t.RunMs / 4, CPUSystemMs: t.RunMs / 20, MemoryPeakBytes: max(9, a.PeakMiB) << 20, PidsPeak: 11, IOReadBytes: 3 << 20, IOWriteBytes: 1 << 16}
	r.Limits = api.AppliedLimits{MemoryBytes: 256 << 20, Pids: 64, CPUPercent: 200, OutputBytes: 1 << 20, OpenFiles: 1024, WorkspaceBytes: 64 << 20}
	r.Output.Content = api.ContentOutput{SeenBytes: int64(len(a.Text)), KeptBytes: int64(len(a.Text))}
	if a.Stderr != "" {
		n := int64(len(a.Stderr))
		r.Output.Stderr = api.StreamOutput{Head: a.Stderr, SeenBytes: n, KeptBytes: n}
	}
	r.Sandbox = api.Receipt{
		Tier: "native", Cgroup: "v2", Network: "none", Read: []string{"/srv/data"}, Write: []string{}, UID: 20_001, LandlockABI: 4,
		Enforced: []string{"user namespace", "mount namespace", "pid namespace", "network namespace", "seccomp", "no_new_privs", "landlock"},
		Degraded: []api.Degradation{{Feature: "io weight", Reason: "this kernel has no io controller here", Remedy: "boot with cgroup_no_v1=all"}},
	}
	return r
}

// testTools are what turns know of the tools, catalogueOf what people are told.
var testTools = map[string]turn.Tool{
	"ask":  {Name: "ask", Mode: turn.ModeAsk, Request: supervisor.Request{Sandbox: &supervisor.Policy{Read: []string{"/srv/data"}, Write: []string{"/srv/out"}, Network: "host"}}},
	"wipe": {Name: "wipe", Destructive: true, Request: supervisor.Request{Sandbox: &supervisor.Policy{}}},
	"deny": {Name: "deny", Mode: turn.ModeDeny},
	"reach": {Name: "reach", Request: supervisor.Request{Sandbox: &supervisor.Policy{
		Network: "grants", Grants: []network.Grant{{Host: "pypi.org", Ports: []uint16{443}}, {Host: "10.20.0.0/16", Ports: []uint16{5432}}}, AskNetwork: true,
	}}},
	"solo": {Name: "solo", Exclusive: true},
}

func findTool(name string) (turn.Tool, bool) {
	tool, special := testTools[name]
	if !special {
		tool = turn.Tool{Name: name}
	}
	return tool, !strings.HasPrefix(name, "missing")
}

type catalogue struct{}

func (catalogue) Tools(context.Context, string) ([]api.Tool, []error) {
	yes, half, most := true, int64(30_000), int64(120_000)
	return []api.Tool{
		{
			Name: "work", Title: "Work", Description: "Does what its arguments say, and takes its time for it.\nA second line says more.", Source: "plugin /usr/lib/toolhost/work",
			InputSchema: json.RawMessage(`{"type":"object","required":["text"],"additionalProperties":false,"properties":{
				"text":{"type":"string","description":"what it answers with"}, "ms":{"type":"integer","minimum":0,"maximum":60000,"description":"how long it takes"},
				"hold":{"type":"string"}, "lines":{"type":"integer","default":3}, "big":{"type":"integer"}, "echo":{"type":"boolean"}, "mode":{"enum":["fast","careful"],"default":"fast"},
				"verbose":{"type":"boolean","description":"say more"}, "tags":{"type":"array","items":{"type":"string"}},
				"place":{"type":"object","required":["lat"],"properties":{"lat":{"type":"number"},"lon":{"type":"number"}}}, "anything":{}}}`),
			Annotations: api.Annotations{ReadOnly: &yes, Idempotent: &yes}, Mode: "allow", TimeoutMs: &half, MaxTimeoutMs: &most,
		},
		{Name: "ask", Description: "Asks before it runs.", InputSchema: json.RawMessage(`{"type":"object"}`), Mode: "ask", Exclusive: true, TimeoutMs: &half},
		{Name: "wipe", Description: "Destroys something.", InputSchema: json.RawMessage(`{"type":"object","properties":{}, "additionalProperties":false}`), Annotations: api.Annotations{Destructive: &yes}, Mode: "ask"},
	}, []error{errors.New("tool broken (toolhost.yaml:31): the binary /usr/lib/toolhost/broken is missing")}
}
