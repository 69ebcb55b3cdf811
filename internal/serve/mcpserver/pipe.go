package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/strictjson"
)

const (
	// maxOpen bounds the requests of a client that are not answered, and
	// maxFaults the answers to what is not a message that it has not taken yet.
	maxOpen   = 1024
	maxFaults = 1024
	// maxAsked bounds the requests answered by questions whose ids are known; the
	// oldest makes room.
	maxAsked = 1024
	// lastWords is how long an end waits for answers to be taken.
	lastWords = time.Second

	cancelledMethod = "notifications/cancelled"
	// batchVersion is the one version that has batches.
	batchVersion = "2025-03-26"
)

// pipe is the connection with one client over two streams, a message a line. It
// implements the SDK's Transport and Connection. A line that is not a message is
// answered with an error, and the next one is read; the SDK's own connection
// ends then, with all of its calls. Reading never waits for writing: a client
// that takes no answers is heard when it cancels or ends.
type pipe struct {
	in       io.ReadCloser
	out      io.WriteCloser
	incoming chan jsonrpc.Message
	faults   chan []byte   // answers that wait to be written; only read sends
	ended    chan struct{} // closed when nothing more is read; err is why
	err      error
	closed   chan struct{} // by Close
	close    func() error
	batches  bool // of read's, as begun is
	begun    bool // the session

	writing sync.Mutex // held while a line is written, however long that takes

	giveUp func(state string) // ends the call that has sent it; nil does nothing

	mu     sync.Mutex
	open   map[jsonrpc.ID]bool // requests without an answer; true: cancelled, they get none
	asked  []asked             // those that were answered by questions, the newest last
	unsaid int                 // answers that are not written, to faults too
	quiet  chan struct{}       // there are none; holds one
}

func newPipe(in io.ReadCloser, out io.WriteCloser) *pipe {
	p := &pipe{
		in: in, out: out, incoming: make(chan jsonrpc.Message), faults: make(chan []byte, maxFaults),
		ended: make(chan struct{}), closed: make(chan struct{}), open: map[jsonrpc.ID]bool{}, quiet: make(chan struct{}, 1),
	}
	p.close = sync.OnceValue(func() error {
		close(p.closed)
		return errors.Join(in.Close(), out.Close())
	})
	return p
}

// Connect implements the SDK's Transport.
func (p *pipe) Connect(context.Context) (mcpsdk.Connection, error) {
	go p.read()
	go p.say()
	return p, nil
}

// SessionID implements the SDK's Connection: there is one session only.
func (p *pipe) SessionID() string { return "" }

// Close implements the SDK's Connection.
func (p *pipe) Close() error { return p.close() }

// Read implements the SDK's Connection. Read returns the end of the stream
// only after Close: the SDK would write no more answers.
func (p *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-p.incoming:
		return m, nil
	case <-p.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read ends with the stream, with Close once a Read of the stream returns, and
// with a client that sends faults without taking their answers.
func (p *pipe) read() {
	from := newLines(p.in)
	for p.err == nil {
		line, err := from.next()
		switch {
		case errors.Is(err, errLong):
			p.err = p.refuse(&fault{code: jsonrpc.CodeInvalidRequest, text: err.Error()})
		case err != nil:
			p.err = err
		default:
			p.err = p.take(line)
		}
	}
	close(p.faults)
	close(p.ended)
}

// take hands on what a line holds.
func (p *pipe) take(line []byte) error {
	list := []json.RawMessage{line}
	if err := strictjson.Message(line); strictjson.TooMany(err) {
		return p.refuse(&fault{code: jsonrpc.CodeInvalidRequest, text: err.Error()})
	}
	if line[0] == '[' && p.batches && json.Valid(line) {
		list = nil
		if err := json.Unmarshal(line, &list); err != nil || len(list) == 0 {
			return p.refuse(&fault{code: jsonrpc.CodeInvalidRequest, text: "the batch is empty"})
		}
	}
	for _, raw := range list { // each is answered by itself, as soon as it can be
		m, f := readMessage(raw)
		pass := f == nil
		if pass {
			pass, f = p.admit(m)
		}
		if f != nil {
			if err := p.refuse(f); err != nil {
				return err
			}
		}
		if !pass {
			continue
		}
		select {
		case p.incoming <- m:
		case <-p.closed:
			return io.EOF
		}
	}
	return nil
}

// admit keeps account of requests. What is not to pass may have a fault.
func (p *pipe) admit(m jsonrpc.Message) (pass bool, f *fault) {
	r, ok := m.(*jsonrpc.Request)
	switch {
	case !ok:
		return true, nil
	case !r.IsCall():
		return r.Method != cancelledMethod || p.cancel(r.Params), nil
	case r.Method == "initialize":
		var params struct {
			Version string `json:"protocolVersion"`
		}
		p.batches = json.Unmarshal(r.Params, &params) == nil && params.Version == batchVersion
	}
	if p.begun = p.begun || begins(r); !p.begun {
		f = tooEarly(r)
	}
	if f != nil {
		return false, f
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, taken := p.open[r.ID]; taken { // no answer by the id: the first request waits for one
		return false, &fault{code: jsonrpc.CodeInvalidRequest, text: fmt.Sprintf("the id %#v is that of a request without an answer yet: use each only once", r.ID.Raw())}
	}
	if len(p.open) >= maxOpen {
		return false, &fault{id: idText(r), code: codeBusy, text: fmt.Sprintf("%d requests are without an answer: wait for some", maxOpen)}
	}
	p.open[r.ID] = false
	p.asked = slices.DeleteFunc(p.asked, func(one asked) bool { return one.id == r.ID }) // it is another's now
	p.unsaid++
	return true, nil
}

// asked is a request that was answered by a question, and the requestState to come back
// with.
type asked struct {
	id    jsonrpc.ID
	state string
}

// cancel says whether a cancellation names a request; the SDK would round an id. To MCP a
// request is over that was answered by a question, and a client that will not come back has
// nothing to say so with but its id: that ends the call.
func (p *pipe) cancel(params json.RawMessage) bool {
	var fields struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &fields)
	id, ok := idOf(fields.ID)
	if !ok {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, there := p.open[id]; there {
		p.open[id] = true
	}
	if i := slices.IndexFunc(p.asked, func(one asked) bool { return one.id == id }); i >= 0 {
		go p.giveUp(p.asked[i].state)
	}
	return true
}

// answers takes a request as answered, before the client can know the answer and use the id
// again; it says whether the client has cancelled it.
func (p *pipe) answers(r *jsonrpc.Response) (cancelled bool) {
	state := ""
	if p.giveUp != nil && bytes.Contains(r.Result, []byte(`"requestState"`)) {
		state = object.Text(r.Result, "requestState")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	cancelled = p.open[r.ID]
	delete(p.open, r.ID)
	switch {
	case state == "":
	case cancelled: // nobody hears of the question
		go p.giveUp(state)
	default:
		p.asked = append(p.asked, asked{r.ID, state})
		p.asked = p.asked[max(0, len(p.asked)-maxAsked):]
	}
	return cancelled
}

// refuse answers what is not a message. It never waits; an error ends the session.
func (p *pipe) refuse(f *fault) error {
	id, known := idOf(f.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, there := p.open[id]; known && there { // it would pass for that request's answer
		f.id = nil
	}
	select {
	case p.faults <- append(f.json(), '\n'):
		p.unsaid++
		return nil
	default:
		return fmt.Errorf("it sends what is not a message, faster than it takes the answers: %d of them wait", maxFaults)
	}
}

// say writes the answers to faults.
func (p *pipe) say() {
	for line := range p.faults {
		_ = p.write(line) // a client that is gone shows when reading
		p.said()
	}
}

// Write implements the SDK's Connection. A cancelled request gets no answer, as
// MCP has it.
func (p *pipe) Write(ctx context.Context, m jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, answers := m.(*jsonrpc.Response)
	if answers {
		defer p.said()
		if p.answers(r) {
			return nil
		}
	}
	line, err := lineOf(m)
	if err != nil {
		return fmt.Errorf("cannot write a message: %w", err)
	}
	return p.write(line)
}

func (p *pipe) write(line []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := p.out.Write(line)
	return err
}

func (p *pipe) said() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unsaid--; p.unsaid > 0 {
		return
	}
	select {
	case p.quiet <- struct{}{}:
	default:
	}
}

// finish waits for what is still to be said, for lastWords at most.
func (p *pipe) finish() {
	enough := time.NewTimer(lastWords)
	defer enough.Stop()
	for !p.silent() {
		select {
		case <-p.quiet: // or was before
		case <-p.closed:
			return
		case <-enough.C:
			return
		}
	}
}

func (p *pipe) silent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unsaid == 0
}
