package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolhost/toolhost/api"
)

// ErrGone is the error of requests to a relay that has ended, and its connections with it.
var ErrGone = errors.New("the network relay has ended")

// Handler takes what a relay says by itself. Its methods must return soon.
type Handler interface {
	// Asked: a connection waits for Client.Answer.
	Asked(Ask)
	// Left: no connection waits for the answer any more.
	Left(Ask)
	// Passed: a session has passed the limit of that name.
	Passed(session, limit string)
	// Reported: what a call came to whose session has ended meanwhile. It comes before
	// the answer to Client.End.
	Reported(session, call string, r *api.Network)
}

// Client is a host's connection to its relay. Its methods may be used from any
// goroutine.
type Client struct {
	conn    *net.UnixConn
	handler Handler
	gone    chan struct{}

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan message
	writing sync.Mutex
}

// NewClient speaks to a relay on a socket of type SOCK_SEQPACKET, until Close or
// the relay's end.
func NewClient(conn *net.UnixConn, handler Handler) *Client {
	c := &Client{conn: conn, handler: handler, gone: make(chan struct{}), waiting: map[uint64]chan message{}}
	go c.read()
	return c
}

// Gone is closed when the relay has ended.
func (c *Client) Gone() <-chan struct{} { return c.gone }

// Close ends the relay's connections, and the relay.
func (c *Client) Close() error { return c.conn.Close() }

func (c *Client) read() {
	defer close(c.gone)
	r := newReceiver(c.conn)
	for {
		m, files, err := r.next()
		closeAll(files) // a relay has no files to give
		if err != nil {
			_ = c.conn.Close()
			return
		}
		c.take(m)
	}
}

func (c *Client) take(m message) {
	switch {
	case m.ID == 0 && m.Op == opAsk && m.Ask != nil:
		c.handler.Asked(*m.Ask)
	case m.ID == 0 && m.Op == opLeft && m.Ask != nil:
		c.handler.Left(*m.Ask)
	case m.ID == 0 && m.Op == opReport:
		c.handler.Reported(m.Of, m.Call, m.Report)
	case m.ID == 0 && m.Op == opLimit:
		c.handler.Passed(m.Of, m.Why)
	default:
		c.mu.Lock()
		answer := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// request is one that was sent.
type request struct {
	client *Client
	id     uint64
	answer chan message
}

// begin sends a request, which is to be waited for or given up.
func (c *Client) begin(m message, files []*os.File) (*request, error) {
	r := &request{client: c, answer: make(chan message, 1)}
	c.mu.Lock()
	c.last++
	r.id = c.last
	c.waiting[r.id] = r.answer
	c.mu.Unlock()
	m.ID = r.id
	if err := c.send(m, files); err != nil {
		r.giveUp()
		return nil, err
	}
	return r, nil
}

func (r *request) giveUp() {
	r.client.mu.Lock()
	defer r.client.mu.Unlock()
	delete(r.client.waiting, r.id)
}

func (r *request) wait(ctx context.Context) (message, error) {
	defer r.giveUp()
	select {
	case got := <-r.answer:
		if got.Error != "" {
			return got, RefusedError(got.Error)
		}
		return got, nil
	case <-r.client.gone:
		return message{}, ErrGone
	case <-ctx.Done():
		return message{}, fmt.Errorf("the network relay does not answer: %w", context.Cause(ctx))
	}
}

// ask sends a request and waits for its answer.
func (c *Client) ask(ctx context.Context, m message) (message, error) {
	r, err := c.begin(m, nil)
	if err != nil {
		return message{}, err
	}
	return r.wait(ctx)
}

// RefusedError is what a relay answers that cannot do what it was asked for; it
// holds nothing of that.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

func (c *Client) send(m message, files []*os.File) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := send(c.conn, m, files); err != nil {
		return fmt.Errorf("cannot speak to the network relay: %w", err)
	}
	return nil
}

// Hello begins: proxy, if not nil, is the outbound proxy for names. An error says
// that the relay cannot be used.
func (c *Client) Hello(ctx context.Context, proxy *httpproxy.Config) error {
	got, err := c.ask(ctx, message{Op: opHello, Version: version, Proxy: proxy})
	if err == nil && got.Version != version {
		err = fmt.Errorf("the network relay speaks version %d, not %d: the program was replaced since it was started; restart it", got.Version, version)
	}
	return err
}

// Open has the relay serve a process's sockets, whose files the caller may close
// when it returns; opened waits until it does. Later requests are carried out
// after that.
func (c *Client) Open(s Session, files []*os.File) (opened func(context.Context) error, err error) {
	r, err := c.begin(message{Op: opOpen, Session: &s}, files)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := r.wait(ctx)
		return err
	}, nil
}

// Begin says that a kept process serves a call of that name from now on, alone if no
// other call is there: then it has the limits of connections and bytes in all to itself.
func (c *Client) Begin(ctx context.Context, session, call string, alone bool) error {
	_, err := c.ask(ctx, message{Op: opBegin, Of: session, Call: call, Alone: alone})
	return err
}

// Report is what a session came to since a call began, which it ends; without one it is
// all that there is so far.
func (c *Client) Report(ctx context.Context, session, call string) (*api.Network, error) {
	got, err := c.ask(ctx, message{Op: opReport, Of: session, Call: call})
	return got.Report, err
}

// End ends a session: nothing of it is left when it returns. drain lets what the
// tool had sent on connections that it has closed reach its destination, for a
// short while.
func (c *Client) End(ctx context.Context, session string, drain bool) (*api.Network, error) {
	got, err := c.ask(ctx, message{Op: opClose, Of: session, Drain: drain})
	return got.Report, err
}

// Answer settles an Ask; why is for a denial. Later requests are carried out after that.
// taken waits for the ID of the question that has the answer: that one, a later one about
// the same name, or 0 if no connection waits any more. A yes for which it is 0 has let
// nothing through.
func (c *Client) Answer(a Ask, v Verdict, why string) (taken func(context.Context) (int, error), err error) {
	r, err := c.begin(message{Op: opAnswer, Ask: &a, Verdict: v, Why: why}, nil)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (int, error) {
		got, err := r.wait(ctx)
		return got.Taken, err
	}, nil
}
