package mcp

import (
	"bytes"
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

	"github.com/toolhost/toolhost/internal/nowait"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// maxRequests is how many of the server's own requests may wait for an answer.
const maxRequests = 16

// Methods of what a server sends by itself; other notifications are dropped.
const (
	methodProgress  = "notifications/progress"
	methodLog       = "notifications/message"
	methodUpdated   = "notifications/resources/updated"
	methodListening = "notifications/subscriptions/acknowledged"
	listChanged     = "/list_changed"

	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
	methodPing   = "ping"
)

// methodCancelled goes both ways.
const methodCancelled = "notifications/cancelled"

// wire is the connection with the server: one goroutine reads, and sees every
// message in order. The SDK's client would not do here: it queues notifications
// without bound and may deliver them after the result that they came before, forgets
// a request that is cancelled although its result may still come, does not tell a
// request's id, and decodes parameters and results into types that not all of them
// fit. Nor would its transport, which decodes each message a second time and hands it
// from goroutine to goroutine.
type wire struct {
	in      *lines
	process *process
	writing sync.Mutex // held while a line is written, however long that takes
	sent    int64      // bytes; writing guards it
	note    func(string)
	// serve answers a request of the server's, on a goroutine of its own; announce
	// takes notifications that no call waits for.
	serve    func(ctx context.Context, m *jsonrpc.Request) (any, error)
	announce func(method string, params json.RawMessage)
	// over is closed when no more message can come; err says why.
	over chan struct{}
	err  error
	// closedHere: this side has closed the connection; writeFailed: since the server
	// takes no messages.
	closedHere, writeFailed atomic.Bool

	mu       sync.Mutex
	gone     bool                     // nobody can read what is sent
	heard    int64                    // how much of that somebody has read, once nobody can
	asked    map[jsonrpc.ID]*exchange // without an answer
	calls    map[string]*call         // by progress token
	tokens   int
	ids      int64
	requests map[string]context.CancelFunc // the server's own, by idKey; ends the work for its answer
}

// exchange is one request to the server.
type exchange struct {
	done   chan struct{} // closed when answer is there
	stream bool          // it lasts until it is cancelled, by either side

	// Guarded by the wire's mu.
	id     jsonrpc.ID // invalid if it was not sent
	answer *jsonrpc.Response
	mended int   // bytes of the answer that are not UTF-8
	begins int64 // at which byte of what was sent
}

func newExchange() *exchange { return &exchange{done: make(chan struct{})} }

func newStream() *exchange { return &exchange{done: make(chan struct{}), stream: true} }

// newWire begins to read; nothing may be sent before.
func newWire(p *process, s *session) *wire {
	w := &wire{
		in: newLines(nowait.NewReader(p.stdout), func(line []byte) { s.notes.add(strayNote(line)) }), process: p, note: s.notes.add, serve: s.serve, announce: s.announce, over: make(chan struct{}),
		asked: map[jsonrpc.ID]*exchange{}, calls: map[string]*call{}, requests: map[string]context.CancelFunc{},
	}
	go w.read()
	return w
}

// strayNote says why a line is not a message.
func strayNote(line []byte) string {
	if rest, marked := bytes.CutPrefix(line, byteOrderMark); marked {
		return "began a line that is not the first of its stdout with a byte order mark, so that it is not a message: " + text.Begin(string(rest), 200)
	}
	return "wrote to stdout what is not a message: " + text.Begin(string(line), 200)
}

// read takes messages until there are no more.
func (w *wire) read() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		next, err := w.in.next()
		if err != nil {
			if w.err = err; w.closedHere.Load() {
				w.err = errClosedHere
			}
			close(w.over)
			return
		}
		switch m := next.Message.(type) {
		case *jsonrpc.Response:
			w.answered(m, next.mended)
		case *jsonrpc.Request:
			w.take(ctx, m, next.id)
		}
	}
}

func (w *wire) answered(m *jsonrpc.Response, mended int) {
	w.mu.Lock()
	id := w.meant(m.ID)
	e, ok := w.asked[id]
	if ok {
		delete(w.asked, id)
		e.answer, e.mended = m, mended
		close(e.done)
	}
	w.mu.Unlock()
	if !ok {
		w.note("answered what it was not asked, or no longer")
	}
}

// meant is the request that an answer of this id is for. All requests have numbers: there
// are servers that keep them as text, and the SDKs' clients take that. w is locked.
func (w *wire) meant(id jsonrpc.ID) jsonrpc.ID {
	text, is := id.Raw().(string)
	switch {
	case !id.IsValid():
		return w.soleRequest()
	case is:
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			id, _ = jsonrpc.MakeID(float64(n)) // it takes numbers
		}
	}
	return id
}

// soleRequest is the id of the pending request, and invalid unless there is exactly one. w
// is locked.
func (w *wire) soleRequest() (only jsonrpc.ID) {
	for id, e := range w.asked {
		switch {
		case e.stream:
		case only.IsValid():
			return jsonrpc.ID{}
		default:
			only = id
		}
	}
	return only
}

// take sees to a request or notification of the server.
func (w *wire) take(ctx context.Context, m *jsonrpc.Request, id json.RawMessage) {
	switch {
	case m.IsCall():
		w.admit(ctx, m, id)
	case m.Method == methodProgress:
		w.progress(m.Params)
	case m.Method == methodLog:
		w.log(m.Params)
	case m.Method == methodCancelled:
		w.takeBack(m.Params)
	case strings.HasSuffix(m.Method, listChanged), m.Method == methodUpdated, m.Method == methodListening, m.Method == mcpcall.ElicitationComplete:
		w.announce(m.Method, m.Params)
	}
}

// admit has a request of the server's answered, unless there are too many.
func (w *wire) admit(ctx context.Context, m *jsonrpc.Request, id json.RawMessage) {
	refusal, key := "", idKey(id)
	var own context.Context
	w.mu.Lock()
	switch {
	case w.requests[key] != nil:
		refusal = "a request of this id waits already"
	case len(w.requests) == maxRequests:
		refusal = "too many requests at once, at most " + strconv.Itoa(maxRequests)
	case m.Method == methodElicit && !isObject(m.Params):
		refusal = "the request has no params"
	default:
		own, w.requests[key] = context.WithCancel(ctx)
	}
	w.mu.Unlock()
	if refusal == "" {
		go w.reply(own, m, id)
		return
	}
	w.note("had a request of " + text.Begin(m.Method, 100) + " refused: " + refusal)
	_ = w.respond(response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: refusal}})
}

// reply answers a request of the server's.
func (w *wire) reply(ctx context.Context, m *jsonrpc.Request, id json.RawMessage) {
	r := response{ID: id}
	result, err := w.serve(ctx, m)
	if err == nil {
		r.Result, err = json.Marshal(result)
	}
	if err != nil {
		r.Error = asRPC(err)
	}
	w.mu.Lock()
	key := idKey(id)
	cancel := w.requests[key]
	delete(w.requests, key)
	w.mu.Unlock()
	cancel()
	_ = w.respond(r)
}

// asRPC is an error as a server gets it.
func asRPC(err error) *jsonrpc.Error {
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return rpc
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// takeBack ends the work for a request that the server has cancelled, or the stream that
// it has ended so.
func (w *wire) takeBack(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	var value any
	if json.Unmarshal(params, &p) != nil || json.Unmarshal(p.RequestID, &value) != nil {
		return
	}
	id, err := jsonrpc.MakeID(value)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.asked[w.meant(id)]
	switch cancel := w.requests[idKey(p.RequestID)]; {
	case cancel != nil:
		cancel()
	case e != nil && e.stream:
		delete(w.asked, e.id)
		e.answer = &jsonrpc.Response{ID: e.id}
		close(e.done)
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

// end forgets a call.
func (w *wire) end(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, c.token)
}

// forget drops a request that nobody waits for; a late answer to it is one to
// nothing.
func (w *wire) forget(e *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.asked, e.id)
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

// close ends the connection.
func (w *wire) close() {
	w.closedHere.Store(true)
	closeAll(w.process.stdin, w.process.stdout)
}

var errClosedHere = errors.New("the connection was closed by this side")

// ended is whether the server does not speak or listen any more.
func (w *wire) ended() bool {
	select {
	case <-w.over:
		return w.writeFailed.Load() || !errors.Is(w.err, errClosedHere)
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
	case errors.Is(err, errClosedHere), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrClosed):
		return ""
	case errors.Is(err, errTooLong), errors.Is(err, errStrays):
		return err.Error()
	default:
		return "sent what cannot be read: " + text.Begin(err.Error(), maxNoteBytes)
	}
}
