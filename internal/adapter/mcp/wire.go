package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRequests is how many of the server's own requests may wait for an answer.
const maxRequests = 16

// Notifications that the adapter cares for; the SDK drops the rest as well.
const (
	methodCancelled = "notifications/cancelled"
	methodProgress  = "notifications/progress"
	methodLog       = "notifications/message"
	methodElicit    = "elicitation/create"
)

// wire stands between the SDK's client and its transport and sees every message
// in order. The SDK alone would not do: it queues notifications without bound
// and may deliver them after the result that they came before, forgets a request
// that is cancelled although its result may still come, does not tell a
// request's id, and keeps no raw results.
type wire struct {
	mcpsdk.Connection
	transport mcpsdk.IOTransport
	note      func(string)
	// over is closed when no more message can come; err says why.
	over chan struct{}
	err  error
	// left: this side has closed the connection; deaf: because the server takes
	// no messages.
	left, deaf atomic.Bool

	mu       sync.Mutex
	asked    map[jsonrpc.ID]*exchange // without an answer
	calls    map[string]*call         // by progress token
	tokens   int
	requests map[jsonrpc.ID]bool // the server's own
}

// exchange is one request to the server; the wire finds it in the context of
// the request's Write.
type exchange struct {
	// All guarded by the wire's mu.
	id     jsonrpc.ID        // of the last attempt, invalid before the first
	answer *jsonrpc.Response // to it
}

type exchangeKey struct{}

func withExchange(ctx context.Context, e *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, e)
}

func newWire(p *process, note func(string)) *wire {
	stray := func(line []byte) { note("wrote to stdout what is not a message: " + cut(string(line), 200)) }
	return &wire{
		transport: mcpsdk.IOTransport{Reader: newLines(p.stdout, stray), Writer: p.stdin, MaxLineLength: maxMessageBytes + 1<<20},
		note:      note, over: make(chan struct{}),
		asked: map[jsonrpc.ID]*exchange{}, calls: map[string]*call{}, requests: map[jsonrpc.ID]bool{},
	}
}

// Connect implements mcpsdk.Transport.
func (w *wire) Connect(ctx context.Context) (mcpsdk.Connection, error) {
	conn, err := w.transport.Connect(ctx)
	w.Connection = conn
	return w, err
}

// Read implements mcpsdk.Connection. It is called by one goroutine.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		message, err := w.Connection.Read(ctx)
		if err != nil {
			if w.err = err; w.left.Load() {
				w.err = errLeft
			}
			close(w.over)
			return nil, err
		}
		switch m := message.(type) {
		case *jsonrpc.Response:
			if w.answered(m) {
				return m, nil
			}
		case *jsonrpc.Request:
			if w.take(ctx, m) {
				return m, nil
			}
		}
	}
}

// answered is false for an answer to nothing.
func (w *wire) answered(m *jsonrpc.Response) bool {
	w.mu.Lock()
	e, ok := w.asked[m.ID]
	if ok {
		delete(w.asked, m.ID)
		e.answer = m
	}
	w.mu.Unlock()
	if !ok {
		w.note("answered what it was not asked, or no longer")
	}
	return ok
}

// take is whether the SDK gets a request or notification of the server.
func (w *wire) take(ctx context.Context, m *jsonrpc.Request) bool {
	switch {
	case m.IsCall():
		return w.admit(ctx, m)
	case m.Method == methodProgress:
		w.progress(m.Params)
	case m.Method == methodLog:
		w.log(m.Params)
	}
	return m.Method == methodCancelled
}

// admit refuses requests that are too many, and one whose lack of parameters
// the SDK does not expect.
func (w *wire) admit(ctx context.Context, m *jsonrpc.Request) bool {
	refusal := ""
	w.mu.Lock()
	switch {
	case w.requests[m.ID]:
		refusal = "a request of this id waits already"
	case len(w.requests) == maxRequests:
		refusal = "too many requests at once, at most " + strconv.Itoa(maxRequests)
	case m.Method == methodElicit && !strings.HasPrefix(string(m.Params), "{"):
		refusal = "the request has no params"
	default:
		w.requests[m.ID] = true
	}
	w.mu.Unlock()
	if refusal == "" {
		return true
	}
	w.note("had a request of " + cut(m.Method, 100) + " refused: " + refusal)
	_ = w.write(ctx, &jsonrpc.Response{ID: m.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: refusal}})
	return false
}

// Write implements mcpsdk.Connection.
func (w *wire) Write(ctx context.Context, message jsonrpc.Message) error {
	switch m := message.(type) {
	case *jsonrpc.Request:
		if m.Method == methodCancelled {
			return nil // the adapter's own come from cancel
		}
		if m.IsCall() {
			return w.ask(ctx, m)
		}
	case *jsonrpc.Response:
		w.mu.Lock()
		delete(w.requests, m.ID)
		w.mu.Unlock()
	}
	return w.write(ctx, message)
}

func (w *wire) write(ctx context.Context, message jsonrpc.Message) error {
	err := w.Connection.Write(ctx, message)
	if err != nil {
		w.deaf.Store(true)
	}
	return err
}

// ask sends a request. What the server could not take was not asked.
func (w *wire) ask(ctx context.Context, m *jsonrpc.Request) error {
	e, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		e = &exchange{}
	}
	w.mu.Lock()
	w.asked[m.ID] = e
	e.id, e.answer = m.ID, nil
	w.mu.Unlock()
	err := w.write(ctx, m)
	if err != nil {
		w.mu.Lock()
		delete(w.asked, m.ID)
		e.id = jsonrpc.ID{}
		w.mu.Unlock()
	}
	return err
}

// cancel tells the server that nobody waits for the answer any more. It is
// taken all the same. A server that reads nothing holds cancel up.
func (w *wire) cancel(e *exchange, reason string) {
	w.mu.Lock()
	id, answer := e.id, e.answer
	w.mu.Unlock()
	if !id.IsValid() || answer != nil {
		return
	}
	params, err := json.Marshal(map[string]any{"requestId": id.Raw(), "reason": reason})
	if err == nil {
		_ = w.write(context.Background(), &jsonrpc.Request{Method: methodCancelled, Params: params})
	}
}

// result is what the server answered, and whether it was asked at all.
func (w *wire) result(e *exchange) (answer *jsonrpc.Response, asked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return e.answer, e.id.IsValid()
}

// begin registers a call, so that the server's notifications find it.
func (w *wire) begin(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens++
	c.token = "toolhost-" + strconv.Itoa(w.tokens)
	w.calls[c.token] = c
}

// end forgets a call; a late answer to it is one to nothing.
func (w *wire) end(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, c.token)
	delete(w.asked, c.exchange.id)
}

// running are the calls without a result.
func (w *wire) running() (calls []*call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		calls = append(calls, c)
	}
	return calls
}

// Close implements mcpsdk.Connection.
func (w *wire) Close() error {
	w.left.Store(true)
	return w.Connection.Close()
}

var errLeft = errors.New("the connection was closed by this side")

// ended is whether the server does not speak or listen any more.
func (w *wire) ended() bool {
	select {
	case <-w.over:
		return w.deaf.Load() || !errors.Is(w.err, errLeft)
	default:
		return false
	}
}

// broken says how the server broke the protocol; empty if it has just ended, or
// has not.
func (w *wire) broken() string {
	if !w.ended() {
		return ""
	}
	switch err := w.err; {
	case errors.Is(err, errLeft), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrClosed):
		return ""
	case errors.Is(err, errTooLong), errors.Is(err, errStrays):
		return err.Error()
	default:
		return "sent what cannot be read: " + cut(err.Error(), maxNoteBytes)
	}
}
