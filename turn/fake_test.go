package turn

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
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
	result *api.Result
	done   chan struct{}
	aborts chan api.Reason    // those that count: two
	stop   context.CancelFunc // of what is asked
}

func (c *fakeCall) Abort(r api.Reason) {
	c.stop()
	select {
	case c.aborts <- r:
	default:
	}
}

func (c *fakeCall) Result() *api.Result {
	<-c.done
	return c.result
}

type fakeArgs struct {
	Ms    int    `json:"ms"`
	Grace int    `json:"grace"`
	Say   string `json:"say"`

	Ask    string          `json:"ask,omitempty"` // a question, so often at once
	Times  int             `json:"times,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Secret bool            `json:"secret,omitempty"`
	Slow   int             `json:"slow,omitempty"`   // to start, in milliseconds
	Queue  int             `json:"queue,omitempty"`  // between queued and started
	Reach  string          `json:"reach,omitempty"`  // what the question is about
	Leave  int             `json:"leave,omitempty"`  // ends the wait for an answer, in milliseconds
	Again  int             `json:"again,omitempty"`  // so many milliseconds after that it asks again
	Unused int             `json:"unused,omitempty"` // so many after an answer it was of no use
}

// slept is false if ctx ended first. A timer of 0 would fire in the goroutine
// that asks, and two at once in one bubble crash Go 1.26's race detector, as
// they share its state (runtime.(*timer).unlockAndRun).
func slept(ctx context.Context, ms int) bool {
	if ms == 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *fakes) start(ctx context.Context, r supervisor.Request) Running {
	var args fakeArgs
	_ = json.Unmarshal(r.Arguments, &args)
	if !slept(ctx, args.Slow) {
		return over{supervisor.Verdict{Status: api.StatusStartFailed, Message: "[FAILED]"}.Result()}
	}
	timeout := 30 * time.Second
	for _, ask := range r.Timeouts {
		if ask.TimeoutUnset {
			timeout = min(timeout, ask.Max)
			continue
		}
		timeout = min(timeout, ask.Timeout)
	}
	ctx, stop := context.WithCancel(ctx)
	c := &fakeCall{done: make(chan struct{}), aborts: make(chan api.Reason, 2), stop: stop}
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
	go func() {
		if args.Queue > 0 {
			r.Events <- api.Event{Kind: api.EventQueued}
			time.Sleep(time.Duration(args.Queue) * time.Millisecond)
		}
		left, err := timeout, error(nil)
		if r.Left != nil {
			left, err = r.Left()
		}
		if err != nil {
			c.result = supervisor.Verdict{Status: api.StatusStartFailed, Message: "[FAILED]"}.Result()
		} else {
			r.Events <- api.Event{Kind: api.EventStarted}
			said := ask(ctx, r, args)
			c.result = f.play(c, args, min(timeout, left))
			c.result.Content = append(c.result.Content, said...)
		}
		f.mu.Lock()
		f.running--
		f.alone = f.alone && !exclusive
		f.mu.Unlock()
		close(c.done)
	}()
	return c
}

// over is a call that came to nothing.
type over struct{ result *api.Result }

func (over) Abort(api.Reason)      {}
func (o over) Result() *api.Result { return o.result }

// ask puts the call's question, and tells the kind of what came of it.
func ask(ctx context.Context, r supervisor.Request, args fakeArgs) (said []api.Content) {
	if args.Ask == "" {
		return nil
	}
	whole := ctx
	if args.Leave > 0 {
		limited, leave := context.WithTimeout(ctx, time.Duration(args.Leave)*time.Millisecond)
		defer leave()
		ctx = limited
	}
	answers := make([]supervisor.Answer, max(args.Times, 1))
	var asking sync.WaitGroup
	for i := range answers {
		asking.Go(func() {
			answers[i] = r.Ask(ctx, supervisor.Question{Prompt: args.Ask, Schema: args.Schema, Secret: args.Secret, Reach: args.Reach})
		})
	}
	asking.Wait()
	for _, a := range answers {
		if args.Unused > 0 {
			time.AfterFunc(time.Duration(args.Unused)*time.Millisecond, a.Unused)
		}
		text := " denied: " + a.Denied
		if a.Denied == "" && !args.Secret {
			text = " answered: " + string(a.Value)
		} else if a.Denied == "" {
			text = " a secret of " + strconv.Itoa(len(a.Value)) + " bytes"
		}
		said = append(said, api.Content{Type: "text", Text: text})
	}
	if args.Again > 0 && slept(whole, args.Again) {
		args.Leave, args.Again = 0, 0
		said = append(said, ask(whole, r, args)...)
	}
	return said
}

func (f *fakes) play(c *fakeCall, args fakeArgs, timeout time.Duration) *api.Result {
	verdict := supervisor.Verdict{Status: api.StatusOK}
	end := time.NewTimer(max(min(time.Duration(args.Ms)*time.Millisecond, timeout), 1)) // see slept
	select {
	case <-end.C:
		if time.Duration(args.Ms)*time.Millisecond > timeout {
			verdict = supervisor.Verdict{Status: api.StatusTimeout, Reason: "deadline", Message: "[TIMEOUT]"}
		}
	case reason := <-c.aborts:
		select {
		case <-time.After(max(time.Duration(args.Grace)*time.Millisecond, 1)): // see slept
		case <-c.aborts: // kills at once
		}
		verdict = supervisor.Verdict{Status: api.StatusCancelled, Reason: reason, Message: "[CANCELLED]"}
	}
	r := verdict.Result()
	r.Content = append(r.Content, api.Content{Type: "text", Text: args.Say})
	return r
}

var testTools = map[string]Tool{
	"work":   {Name: "work"},
	"poll":   {Name: "poll", Repeatable: true},
	"alone":  {Name: "alone", Exclusive: true, Request: supervisor.Request{Tool: supervisor.Tool{Name: "alone"}}},
	"ask":    {Name: "ask", Mode: ModeAsk},
	"picky":  {Name: "picky", Mode: ModeAsk, Check: func(json.RawMessage, json.RawMessage) error { return errors.New("no such colour") }},
	"wipe":   {Name: "wipe", Destructive: true},
	"banned": {Name: "banned", Mode: ModeDeny},
	"reads":  {Name: "reads", Request: supervisor.Request{Tool: supervisor.Tool{Name: "reads", ReadOnly: true}}},
	"claims": {Name: "claims", ReadOnly: true},
}

// recorder is a journal that can fail, and lose what it has.
type recorder struct {
	mu      sync.Mutex
	records []Record
	commits int
	fail    error
	lost    map[int64]bool
	reads   int
}

// history gives a few at a time.
func (m *recorder) history(turnID string, after int64) (page []*Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	for _, r := range m.records {
		if r.Event.TurnID == turnID && r.Event.Seq > after && !m.lost[r.Event.Seq] && len(page) < 3 {
			page = append(page, &Record{Record: api.Record{Event: r.Event, JSON: r.JSON}})
		}
	}
	return page, m.fail
}

func (m *recorder) Append(records ...Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.records = append(m.records, records...)
	m.commits++
	return nil
}

func (m *recorder) list() []Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Record{}, m.records...)
}

type world struct {
	*Manager
	fakes   *fakes
	journal *recorder
}

func newWorld() *world {
	w := &world{fakes: &fakes{}, journal: &recorder{}}
	w.Manager = New(Config{Start: w.fakes.start, Journal: w.journal, History: w.journal.history, Parallel: 8, Tool: func(name string) (Tool, bool) {
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

func run(t *testing.T, turn *Turn, calls ...Call) []*api.Result {
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

func statuses(results []*api.Result) (list []string) {
	for _, r := range results {
		text := string(r.Status)
		if r.Reason != "" {
			text += "/" + string(r.Reason)
		}
		list = append(list, text)
	}
	return list
}

var unlimited = budget.TurnSpec{MaxCalls: 1_000_000}
