package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
	"github.com/toolhost/toolhost/plugin"
)

// session is one life of the server. One goroutine, run, owns it.
type session struct {
	options Options
	argv    []string
	// ready is closed when calls can be made, dying when none should be made any
	// more, ended when all of it is over; err says why and is set before.
	ready, dying, ended chan struct{}
	err                 error
	notes               notes
	stderr              tail
	former              bool // it begins as protocols before the newest one do, if it can

	// Set before ready is closed.
	process *process
	wire    *wire
	server  identity

	tell  func(method string, params json.RawMessage) (watched bool) // notifications, to the host
	leave context.CancelFunc                                         // ends it, for nobody needs it

	mu            sync.Mutex
	own           map[string]string        // the server's names of its tools, as far as listed
	level         string                   // of its log, as it was told
	subscriptions map[string]*subscription // that have a stream of their own, by URI
	lists         *listStream              // nil where none is wanted, or the server has ended it
}

func newSession(o Options, argv []string, by *hearing, tell func(string, json.RawMessage) bool) *session {
	return &session{
		tell: tell, subscriptions: map[string]*subscription{},
		options: o, argv: argv, notes: notes{to: by, server: o.Name, told: map[string]bool{}}, stderr: tail{by: by},
		ready: make(chan struct{}), dying: make(chan struct{}), ended: make(chan struct{}),
	}
}

// run has the server's life, which is over at the latest when ctx is.
func (s *session) run(ctx context.Context) {
	defer close(s.ended)
	ways := []func(context.Context) error{s.discover, s.initializeOrDiscover}
	if s.former {
		ways = ways[1:]
	}
	began := time.Now()
	err := s.open(ctx, ways...)
	inTime := time.Since(began) < s.options.StartTimeout
	if !s.former && err != nil && s.wire != nil && s.wire.ended() && inTime && ctx.Err() == nil { // some die of what they do not know
		err = s.open(ctx, s.initialize)
	}
	if err == nil {
		close(s.ready)
		err = s.live(ctx)
		if ctx.Err() == nil {
			s.tell(mcpcall.ServerEnded, json.RawMessage("{}"))
		}
	}
	s.err = err
}

// over is whether nothing more should be asked of the server.
func (s *session) over() bool {
	select {
	case <-s.dying:
		return true
	case <-s.ended:
		return true
	default:
		return false
	}
}

// open starts the server and agrees with it on how to speak, in the first way that
// it knows. After an error nothing of it is left.
func (s *session) open(ctx context.Context, ways ...func(context.Context) error) error {
	process, err := startProcess(s.argv, &s.stderr)
	if err != nil {
		return err
	}
	s.process = process
	s.wire = newWire(process, s)
	limit, cancel := context.WithTimeoutCause(ctx, s.options.StartTimeout, errStartTimeout)
	defer cancel()
	stop := context.AfterFunc(limit, process.shut) // or a write may wait for a server that reads nothing
	defer stop()
	for _, way := range ways {
		if err = way(limit); !errors.Is(err, errUnknownWay) {
			break
		}
	}
	if err != nil {
		if _, answered := errors.AsType[*jsonrpc.Error](err); !answered && limit.Err() == nil {
			within(settleTime, s.wire.over) // a write may have failed before the server's end is read
		}
		err = s.startFailure(limit, err)
		s.wire.close()
		process.shut()
	}
	return err
}

// notWithin names the key of the configuration that gives a server more time.
func (s *session) notWithin(method string) string {
	return fmt.Sprintf("has not answered %s within %s: %s", method, s.options.StartTimeout, text.MoreStartTime)
}

var errStartTimeout = errors.New("the start of the MCP server takes too long")

// live waits for the server's end, or ctx's, and says how it came.
func (s *session) live(ctx context.Context) error {
	select {
	case <-s.process.exited:
	case <-s.wire.over:
	case <-ctx.Done():
	}
	close(s.dying)
	defer s.process.shut()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	kind, what := s.verdict()
	s.wire.settle()
	return s.failure(kind, what, nil)
}

// verdict says how the server ended, or why it is to be ended.
func (s *session) verdict() (plugin.FailureKind, string) {
	if broken := s.wire.broken(); broken != "" {
		return plugin.BrokeProtocol, broken
	}
	exited := within(exitTime, s.process.exited)
	if exited && within(settleTime, s.wire.over) { // its last words
		if broken := s.wire.broken(); broken != "" {
			return plugin.BrokeProtocol, broken
		}
	}
	switch {
	case exited:
		return plugin.Crashed, s.process.end()
	case s.wire.writeFailed.Load():
		return plugin.BrokeProtocol, "takes no messages any more"
	}
	return plugin.BrokeProtocol, "has closed its stdout and goes on running"
}

const (
	// exitTime is how long a server whose output is over may take to end, the
	// rest of its stderr included.
	exitTime = time.Second
	// settleTime bounds the wait for the rest of its output.
	settleTime = 250 * time.Millisecond
)

// within waits a moment for something that should come by itself.
func within(moment time.Duration, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(moment):
		return false
	}
}

// startFailure says why the server did not get ready.
func (s *session) startFailure(ctx context.Context, err error) error {
	what := "cannot be initialized: " + text.Begin(err.Error(), maxNoteBytes)
	e, refused := errors.AsType[*jsonrpc.Error](err)
	if refused {
		what = "cannot be initialized: " + textOf(e)
	}
	if late := errors.Is(context.Cause(ctx), errStartTimeout); late && refused {
		what += "; and it " + s.notWithin("server/discover")
	} else if late {
		what = s.notWithin("initialize")
	} else if s.wire.ended() {
		_, what = s.verdict()
		what += ", before it had answered initialize"
	}
	return s.failure(plugin.StartFailed, what, err)
}

// failure is one of the server, with what it wrote as evidence.
func (s *session) failure(kind plugin.FailureKind, what string, cause error) error {
	text := fmt.Sprintf("MCP server %q %s%s", s.options.Name, what, s.stderr.evidence())
	f := &plugin.Failure{Kind: kind, Err: &reason{text, cause}}
	if kind == plugin.Crashed {
		f.Exit = s.process.exit()
	}
	return f
}

// reason is an error whose text says all there is to say about its cause.
type reason struct {
	text  string
	cause error
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.cause }

// maxNotes bounds the notes on one process of a server.
const maxNotes = 50

// notes report a server's oddities, each once, on the adapter's stderr, beside
// the server's own.
type notes struct {
	to     io.Writer
	server string

	mu   sync.Mutex
	told map[string]bool
}

func (n *notes) add(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told[what] || len(n.told) == maxNotes {
		return
	}
	n.told[what] = true
	fmt.Fprintf(n.to, "toolhost: MCP server %q %s\n", n.server, what)
	if len(n.told) == maxNotes {
		fmt.Fprintln(n.to, "toolhost: further oddities of this server are not reported")
	}
}
