package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/internal/nowait"
	"github.com/toolhost/toolhost/internal/shield"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
	"github.com/toolhost/toolhost/plugin"
)

// Options of Serve. The zero value works.
type Options struct {
	// Name is what errors call the server; empty is the last part of its
	// command's path.
	Name string
	// StartTimeout bounds the server's start up to its answer to initialize, and
	// then its list of tools; zero is DefaultStartTimeout. It must be less than
	// what the host allows for a Describe, or the host can't say what was slow.
	StartTimeout time.Duration
	// Roots are the folders that the call is granted. A server that asks for the
	// client's roots gets those of the client that lie in them, or them all where no
	// client has any.
	Roots []string
	// Version is this client's, as told to the server.
	Version string
}

// DefaultStartTimeout leaves some of the 10 s that a Describe has by default.
const DefaultStartTimeout = 8 * time.Second

// maxCancelTime is how long a cancelled call waits for its answer at most, if
// no host ends it sooner: a grace period is never longer than 30 s.
const maxCancelTime = 31 * time.Second

// Serve makes a plugin of an MCP server that speaks over stdin and stdout, for
// the host that started this process, until the host ends it. argv is the
// server's argument vector; its environment is this process's. The server is
// started by the first Describe or Call, and again by a later one if it has
// ended in the meantime.
func Serve(o Options, argv []string) {
	shield.Prepare()
	runtime.GOMAXPROCS(1) // it passes messages on: waking a second thread takes longer than what that would do
	a := newAdapter(o, argv)
	plugin.ServeProvider(a)
	a.close()
}

// adapter is the plugin. It has at most one server at a time.
type adapter struct {
	options Options
	argv    []string

	lifetime context.Context
	end      context.CancelCauseFunc
	running  sync.WaitGroup

	hearing *hearing
	notices *notices
	watched atomic.Bool // by the host

	mu sync.Mutex
	// current is the server for clients of the newest protocol, and for all others too
	// if it does not speak that; former is the one for these if it does.
	current, former *session
	found           map[string]plugin.Registered // by their names
}

var (
	_ plugin.Requester = (*adapter)(nil)
	_ plugin.Watcher   = (*adapter)(nil)
	_ nowait.Brief     = (*adapter)(nil)
)

// Brief implements [nowait.Brief]: what takes long is the server's work, in a process of its
// own. A message of some megabytes takes many reads.
func (*adapter) Brief() {}

var errNotNeeded = errors.New("another process of the MCP server does its work")

var errEnded = errors.New("the adapter of the MCP server ends")

func newAdapter(o Options, argv []string) *adapter {
	o.StartTimeout = cmp.Or(o.StartTimeout, DefaultStartTimeout)
	if len(argv) > 0 {
		o.Name = cmp.Or(o.Name, filepath.Base(argv[0]))
	}
	a := &adapter{options: o, argv: argv, hearing: newHearing(os.Stderr), notices: newNotices(), found: map[string]plugin.Registered{}}
	a.lifetime, a.end = context.WithCancelCause(context.Background())
	return a
}

// close ends the server.
func (a *adapter) close() {
	a.end(errEnded)
	a.running.Wait()
}

// Tools implements plugin.Provider.
func (a *adapter) Tools(ctx context.Context) (plugin.Listing, error) {
	a.hearing.begin()
	defer a.hearing.end()
	s, err := a.listed(ctx)
	if err != nil {
		return plugin.Listing{}, err
	}
	return s.describe(ctx, a.calling)
}

// listed is the server to be asked what it has: one that runs, for what it has may
// have changed since it began.
func (a *adapter) listed(ctx context.Context) (*session, error) {
	if running := a.living(); len(running) > 0 {
		return a.ready(ctx, running[0])
	}
	return a.session(ctx)
}

// living are the servers that run, or start, each once.
func (a *adapter) living() (list []*session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if living(a.current) {
		list = append(list, a.current)
	}
	if living(a.former) && a.former != a.current {
		list = append(list, a.former)
	}
	return list
}

func living(s *session) bool { return s != nil && !s.over() }

// Find implements plugin.Provider. It knows nothing of the server's tools: the
// server refuses what it does not have.
func (a *adapter) Find(name string) (plugin.Registered, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	tool, known := a.found[name]
	if known {
		return tool, true
	}
	tool, err := plugin.NewRawTool(plugin.Tool{Name: name}, anyArguments, nil, a.calling(name))
	if len(a.found) == maxFound {
		clear(a.found)
	}
	if err == nil {
		a.found[name] = tool
	}
	return tool, err == nil
}

// maxFound bounds the tools that are kept for further calls.
const maxFound = 1024

var anyArguments = json.RawMessage(`{"type":"object"}`)

func (a *adapter) calling(name string) function {
	return func(ctx context.Context, arguments json.RawMessage, out *plugin.Output) (json.RawMessage, error) {
		return a.call(ctx, name, arguments, out)
	}
}

// call calls a tool by its safe name. A server that turns out to be gone before
// it has read any of that is started once more.
func (a *adapter) call(ctx context.Context, name string, arguments json.RawMessage, out *plugin.Output) (json.RawMessage, error) {
	if !json.Valid(arguments) {
		return nil, &plugin.InvalidArgumentsError{Err: errors.New("they are not JSON")}
	}
	a.hearing.begin()
	defer a.hearing.endCall()
	for attempt := 1; ; attempt++ {
		s, err := a.session(ctx)
		if err != nil {
			return nil, err
		}
		structured, asked, err := s.callByName(ctx, name, arguments, out)
		if err == nil || asked || attempt == 2 || ctx.Err() != nil {
			return structured, err
		}
	}
}

// callByName is callTool for a safe name, which may have to be looked up.
func (s *session) callByName(ctx context.Context, name string, arguments json.RawMessage, out *plugin.Output) (structured json.RawMessage, asked bool, err error) {
	own, err := s.ownName(ctx, name)
	if err != nil {
		return nil, !s.over(), err
	}
	return s.callTool(ctx, own, arguments, out)
}

// session is the server, ready for calls.
func (a *adapter) session(ctx context.Context) (*session, error) {
	if len(a.argv) == 0 {
		return nil, &plugin.Failure{Kind: plugin.StartFailed, Err: errors.New("no MCP server: its command is empty")}
	}
	protocol := mcpcall.Of(plugin.ClientOf(ctx)).Protocol
	if protocol == "" || protocol >= statelessSince {
		return a.newest(ctx)
	}
	return a.ready(ctx, a.older(ctx))
}

// newest is the server for clients of the newest protocol. One that turns out not to
// speak it is the same for all: what it keeps in mind is not to depend on who asks.
func (a *adapter) newest(ctx context.Context) (*session, error) {
	s, err := a.ready(ctx, a.latest(&a.current))
	if err != nil || s.stateless() {
		return s, err
	}
	a.mu.Lock()
	former := a.former
	a.mu.Unlock()
	if former == s || !living(former) {
		return s, nil
	}
	if former, err = a.ready(ctx, former); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == s && a.former == former {
		a.current = former
		s.leave()
	}
	return former, nil
}

// older is the server for other clients: what servers may do, and ask of their clients,
// differs too much for one generation to stand for the other.
func (a *adapter) older(ctx context.Context) *session {
	a.mu.Lock()
	s := a.current
	a.mu.Unlock()
	if living(s) {
		if _, err := a.ready(ctx, s); err == nil && !s.stateless() {
			return s
		}
	}
	return a.latest(&a.former)
}

// ready waits until a server can be asked something.
func (a *adapter) ready(ctx context.Context, s *session) (*session, error) {
	select {
	case <-s.ready:
		if a.watched.Load() {
			s.watch()
		}
		return s, nil
	case <-s.ended:
		return nil, s.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w while MCP server %q was starting%s", context.Cause(ctx), a.options.Name, s.stderr.evidence())
	}
}

// latest starts a server unless one lives.
func (a *adapter) latest(of **session) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !living(*of) {
		s := newSession(a.options, a.argv, a.hearing, a.tell)
		s.former = of == &a.former
		ctx, leave := context.WithCancelCause(a.lifetime)
		s.leave = func() { leave(errNotNeeded) }
		a.running.Go(func() { s.run(ctx) })
		*of = s
	}
	return *of
}

// tell keeps a notification for the host, if that wants any. It may want to hear of a
// subscription that is older than its wish to be told.
func (a *adapter) tell(method string, params json.RawMessage) (watched bool) {
	watched = a.watched.Load()
	if (watched || method == methodUpdated) && !a.notices.add(method, params) && watched {
		for _, s := range a.living() {
			s.notes.add("announces more than the host takes: the rest is left out")
		}
	}
	return watched
}
