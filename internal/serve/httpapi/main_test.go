package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/testenv/openapi"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hangLimit is only there to end a test that hangs.
const hangLimit = 3 * time.Minute

// fakes play the supervisor: each call does what its arguments say.
type fakes struct {
	mu      sync.Mutex
	running map[string]*fakeCall // by what it says
	changed chan struct{}
}

type fakeArgs struct {
	Say string `json:"say"`
	// Hold: it ends only when it is aborted, or let go.
	Hold bool `json:"hold"`
	// Grace: it takes a second abort to end.
	Grace bool `json:"grace"`
	// Chatter is how many output events it sends, of Size bytes each, if given.
	Chatter int `json:"chatter"`
	Size    int `json:"size"`
	// Result is how many bytes more its result has.
	Result int `json:"result"`
	// Ask: it asks a question of its own and says the answer.
	Ask bool `json:"ask"`
}

type fakeCall struct {
	args   fakeArgs
	aborts chan api.Reason
	letGo  chan struct{}
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
	c := &fakeCall{aborts: make(chan api.Reason, 2), letGo: make(chan struct{}), done: make(chan struct{})}
	_ = json.Unmarshal(r.Arguments, &c.args)
	r.Events <- api.Event{Kind: api.EventStarted}
	f.note(c.args.Say, c)
	go func() {
		defer close(c.done)
		defer f.note(c.args.Say, nil)
		c.result = c.play(r)
	}()
	return c
}

func (f *fakes) note(say string, c *fakeCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c == nil {
		delete(f.running, say)
	} else {
		f.running[say] = c
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// await waits until a call that says this runs, or, with none, until it doesn't.
func (f *fakes) await(t testing.TB, say string, runs bool) *fakeCall {
	t.Helper()
	limit := time.After(hangLimit)
	for {
		f.mu.Lock()
		c, changed := f.running[say], f.changed
		f.mu.Unlock()
		if (c != nil) == runs {
			return c
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("waited in vain for %q, running %t", say, runs)
		}
	}
}

func (c *fakeCall) play(r supervisor.Request) *api.Result {
	verdict := supervisor.Verdict{Status: api.StatusOK}
	said := "chatter\n\r\x00<b>" + strings.Repeat("x", c.args.Size)
	for range c.args.Chatter {
		r.Events <- api.Event{Kind: api.EventOutput, Stream: "content", Content: &api.Content{Type: "text", Text: said}}
	}
	text := c.args.Say + strings.Repeat("y", c.args.Result)
	if c.args.Ask {
		a := r.Ask(context.Background(), supervisor.Question{ID: "q", Prompt: "what?", Schema: json.RawMessage(`{"type":"string"}`)})
		text += " " + string(a.Value) + a.Denied
	}
	if c.args.Hold {
		select {
		case reason := <-c.aborts:
			if c.args.Grace {
				<-c.aborts
			}
			verdict = supervisor.Verdict{Status: api.StatusCancelled, Reason: reason, Message: "[CANCELLED]"}
		case <-c.letGo:
		}
	}
	result := verdict.Result()
	result.Content = append(result.Content, api.Content{Type: "text", Text: text})
	return result
}

var testTools = map[string]turn.Tool{
	"work":   {Name: "work"},
	"ask":    {Name: "ask", Mode: turn.ModeAsk, Request: supervisor.Request{Sandbox: &supervisor.Policy{Read: []string{"/data"}}}},
	"banned": {Name: "banned", Mode: turn.ModeDeny},
}

// catalogue is that of the tests.
type catalogue struct{ problems []error }

func (c catalogue) Tools(_ context.Context, name string) ([]api.Tool, []error) {
	yes, timeout := true, int64(30_000)
	all := []api.Tool{
		{Name: "work", Description: "Works.", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: api.Annotations{ReadOnly: &yes}, Mode: "allow", TimeoutMs: &timeout},
		{Name: "ask", InputSchema: json.RawMessage(`{}`), Mode: "ask", Exclusive: true},
	}
	return slices.DeleteFunc(all, func(t api.Tool) bool { return name != "" && t.Name != name }), c.problems
}

const testToken = "test-token-of-at-least-32-characters"

// world is a daemon with its clients: one for the unix socket, one for TCP.
type world struct {
	t       testing.TB
	fakes   *fakes
	turns   *turn.Manager
	journal *journal.Journal
	server  *Server
	http    *http.Server
	socket  string
	address string // of TCP
	client  *client.Client
	unix    *http.Client
}

// newWorld starts a daemon, with a journal unless change takes that away.
func newWorld(t testing.TB, change func(*Config)) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, fakes: &fakes{running: map[string]*fakeCall{}, changed: make(chan struct{})}, socket: filepath.Join(dir, "api.sock")}
	var err error
	if w.journal, err = journal.Open(filepath.Join(dir, "state"), journal.Options{}); err != nil {
		t.Fatal(err)
	}
	reader, err := journal.OpenReader(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Tools: catalogue{}, History: reader, Token: testToken, Tokens: tokens.Open(filepath.Join(dir, "state")), Version: "test"}
	if change != nil {
		change(&config)
	}
	turns := turn.Config{
		Start: w.fakes.start, Journal: journal.Turns{Journal: w.journal},
		Tool: func(name string) (turn.Tool, bool) { tool, ok := testTools[name]; return tool, ok },
	}
	if config.History != nil {
		turns.History = reader.Records
	}
	w.turns = turn.New(turns)
	config.Turns = w.turns
	if w.server, err = New(config); err != nil {
		t.Fatal(err)
	}
	w.serve()
	t.Cleanup(func() { w.stop(reader) })
	return w
}

// documented is what all answers are held to.
var documented = sync.OnceValues(func() (*openapi.Document, error) { return openapi.Parse(document) })

// serve has each request that is taken, and each answer, held to the document.
func (w *world) serve() {
	w.http = w.server.HTTP()
	if _, bench := w.t.(*testing.B); !bench {
		w.http.Handler = w.valid(w.http.Handler)
	}
	for network, address := range map[string]string{"unix": w.socket, "tcp": "127.0.0.1:0"} {
		l, err := net.Listen(network, address)
		if err != nil {
			w.t.Fatal(err)
		}
		if network == "tcp" {
			w.address = l.Addr().String()
		}
		go func() {
			if err := w.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				w.t.Errorf("serve: %v", err)
			}
		}()
	}
	wait.Until(w.t, "the server listens on both", func() bool { return w.server.address.Load() != nil })
	var err error
	if w.client, err = client.New(client.Options{Socket: w.socket}); err != nil {
		w.t.Fatal(err)
	}
	w.unix = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
	}}}
}

func (w *world) valid(h http.Handler) http.Handler {
	doc, err := documented()
	if err != nil {
		w.t.Fatal(err)
	}
	return doc.Handler(h, func(err error) { w.t.Error(err) })
}

// stop ends the daemon as a real one would: streams, turns, requests.
func (w *world) stop(reader *journal.Reader) {
	w.client.Close()
	w.unix.CloseIdleConnections()
	w.server.Close()
	w.turns.Close()
	ctx, cancel := context.WithTimeout(context.Background(), hangLimit)
	defer cancel()
	if err := w.http.Shutdown(ctx); err != nil {
		w.t.Errorf("shutdown: %v", err)
	}
	w.server.Wait()
	if err := errors.Join(reader.Close(), w.journal.Close()); err != nil {
		w.t.Error(err)
	}
	if n := w.server.streams.open(); n != 0 {
		w.t.Errorf("%d streams are still counted", n)
	}
	if n := len(w.server.leases.all); n != 0 {
		w.t.Errorf("%d turns are still let", n)
	}
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), hangLimit)
	w.t.Cleanup(cancel)
	return ctx
}

// begin begins a turn.
func (w *world) begin(spec api.TurnSpec) string {
	w.t.Helper()
	begun, err := w.client.Begin(w.ctx(), spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return begun.TurnID
}

func callOf(id, tool string, args fakeArgs) api.Call {
	args.Say = id
	raw, _ := json.Marshal(args)
	return api.Call{ID: id, Tool: tool, Arguments: raw}
}

// batchRan is what a client got of a batch.
type batchRan struct {
	results []*api.Result
	err     error
}

// runLater runs a batch on a goroutine; the channel gives its results.
func (w *world) runLater(ctx context.Context, id string, calls ...api.Call) <-chan batchRan {
	done := make(chan batchRan, 1)
	go func() {
		results, err := w.client.Run(ctx, id, calls)
		done <- batchRan{results, err}
	}()
	return done
}

func (w *world) wait(done <-chan batchRan) batchRan {
	w.t.Helper()
	select {
	case r := <-done:
		return r
	case <-time.After(hangLimit):
		w.t.Fatal("no results")
		return batchRan{}
	}
}

// open is how many there are.
func (s *streams) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
