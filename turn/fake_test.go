package turn

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// fakes plays the supervisor: each tool takes the milliseconds that its
// arguments say, and grace after an abort.
type fakes struct {
	mu      sync.Mutex
	running int
	most    int
	started []string
	alone   bool // an exclusive call runs
	crowded int  // calls that ran beside an exclusive one
}

type fakeCall struct {
	result *supervisor.Result
	done   chan struct{}
	aborts chan supervisor.AbortReason
}

func (c *fakeCall) Abort(r supervisor.AbortReason) {
	select {
	case c.aborts <- r:
	case <-c.done:
	}
}

func (c *fakeCall) Result() *supervisor.Result {
	<-c.done
	return c.result
}

type fakeArgs struct {
	Ms    int    `json:"ms"`
	Grace int    `json:"grace"`
	Say   string `json:"say"`
}

func (f *fakes) start(_ context.Context, r supervisor.Request) Running {
	var args fakeArgs
	_ = json.Unmarshal(r.Arguments, &args)
	timeout := 30 * time.Second
	for _, ask := range r.Timeouts {
		if ask.TimeoutUnset {
			timeout = min(timeout, ask.Max)
			continue
		}
		timeout = min(timeout, ask.Timeout)
	}
	c := &fakeCall{done: make(chan struct{}), aborts: make(chan supervisor.AbortReason)}
	f.mu.Lock()
	exclusive := r.Tool.Name == "alone"
	if f.alone || exclusive && f.running > 0 {
		f.crowded++
	}
	f.alone = f.alone || exclusive
	f.running++
	f.most = max(f.most, f.running)
	f.started = append(f.started, args.Say)
	f.mu.Unlock()
	r.Events <- supervisor.Event{Kind: supervisor.EventStarted}
	go func() {
		c.result = f.play(c, args, timeout)
		f.mu.Lock()
		f.running--
		f.alone = f.alone && !exclusive
		f.mu.Unlock()
		close(c.done)
	}()
	return c
}

func (f *fakes) play(c *fakeCall, args fakeArgs, timeout time.Duration) *supervisor.Result {
	verdict := supervisor.Verdict{Status: supervisor.StatusOK}
	end := time.NewTimer(min(time.Duration(args.Ms)*time.Millisecond, timeout))
	select {
	case <-end.C:
		if time.Duration(args.Ms)*time.Millisecond > timeout {
			verdict = supervisor.Verdict{Status: supervisor.StatusTimeout, Reason: "deadline", Message: "[TIMEOUT]"}
		}
	case reason := <-c.aborts:
		select {
		case <-time.After(time.Duration(args.Grace) * time.Millisecond):
		case <-c.aborts: // kills at once
		}
		verdict = supervisor.Verdict{Status: supervisor.StatusCancelled, Reason: string(reason), Message: "[CANCELLED]"}
	}
	r := verdict.Result()
	r.Content = append(r.Content, supervisor.Content{Type: "text", Text: args.Say})
	return r
}

var testTools = map[string]Tool{
	"work":   {Name: "work"},
	"alone":  {Name: "alone", Exclusive: true, Request: supervisor.Request{Tool: supervisor.Tool{Name: "alone"}}},
	"ask":    {Name: "ask", Mode: ModeAsk},
	"wipe":   {Name: "wipe", Destructive: true},
	"banned": {Name: "banned", Mode: ModeDeny},
}

// memory is a journal that can fail.
type memory struct {
	mu      sync.Mutex
	records []Record
	fail    error
}

func (m *memory) Append(records ...Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.records = append(m.records, records...)
	return nil
}

func (m *memory) list() []Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Record{}, m.records...)
}

type world struct {
	*Manager
	fakes   *fakes
	journal *memory
}

func newWorld() *world {
	w := &world{fakes: &fakes{}, journal: &memory{}}
	w.Manager = New(Config{Start: w.fakes.start, Journal: w.journal, Tool: func(name string) (Tool, bool) {
		tool, ok := testTools[name]
		return tool, ok
	}})
	return w
}

func (w *world) begin(t *testing.T, spec Spec) *Turn {
	t.Helper()
	turn, err := w.Begin(spec)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func callOf(id, tool string, ms int) Call {
	raw, _ := json.Marshal(fakeArgs{Ms: ms, Say: id})
	return Call{ID: id, Tool: tool, Arguments: raw}
}

func run(t *testing.T, turn *Turn, calls ...Call) []*supervisor.Result {
	t.Helper()
	results, err := turn.Run(t.Context(), calls)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(calls) {
		t.Fatalf("%d results of %d calls", len(results), len(calls))
	}
	for i, r := range results {
		if r.CallID != calls[i].ID || r.TurnID != turn.ID() {
			t.Errorf("result %d is of call %q of turn %q, want %q of %q", i, r.CallID, r.TurnID, calls[i].ID, turn.ID())
		}
	}
	return results
}

func statuses(results []*supervisor.Result) (list []string) {
	for _, r := range results {
		text := string(r.Status)
		if r.Reason != "" {
			text += "/" + r.Reason
		}
		list = append(list, text)
	}
	return list
}

var unlimited = budget.TurnSpec{MaxCalls: 1_000_000}
