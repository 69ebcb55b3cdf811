package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// Config of a Server. Turns, Asker and Tools must be set.
type Config struct {
	// Turns runs the calls; its Interactor must be Asker, or ask it. The Server
	// never closes it.
	Turns *turn.Manager
	Asker *Asker
	// Tools lists what is offered. It is asked once at first, and at each
	// Reload. What cannot be offered is among the problems, one line each.
	Tools func(ctx context.Context) (tools []catalog.Tool, problems []error)
	// Find, if not nil, finds one of them, for calls that come while Tools is
	// asked at first: they wait for no other tool.
	Find func(ctx context.Context, name string) (catalog.Tool, error)
	// Budget, if not nil, is that of each call's turn.
	Budget func() budget.TurnSpec
	// Timeout, if not nil, is how long the client of this name waits for a
	// result; 0 is DefaultClientTimeout, budget.Infinite for ever. The call ends
	// 5 s before, in half the time if that is more.
	Timeout func(client string) time.Duration
	// Parallel bounds the calls of one session that run at once; 0 is 8.
	Parallel int
	// Headless asks nobody, whatever clients can do.
	Headless bool
	// Search lists tools to find and call the others by, in place of those.
	Search bool
	// OthersAnswer: people can answer questions at the daemon, too. A secret, which no
	// client may be asked for, then waits for that, and is denied at once
	// otherwise.
	OthersAnswer bool
	// Servers, if not nil, are the wrapped MCP servers that Tools has described: their
	// prompts and resources are offered, too. Renew has one say anew what it has.
	Servers func() []catalog.Server
	Renew   func(ctx context.Context, entry string) error
	// Health returns what session_status says about the host; nil says
	// nothing.
	Health func() any
	// Access, if not nil, is who an identity of Peers is at the moment; then Claim
	// fills in what its turns have. nil lets everybody do everything.
	Access func(identity string) access.Identity
	Claim  func(access.Identity, *turn.Spec)
	// Share returns the key of the share whose kept processes serve an identity's calls
	// alone (supervisor.Share); empty, or nil, for one that shares them with others.
	Share func(identity string) string
	// Version is toolhost's own.
	Version string
	// Logger is silent if nil.
	Logger hclog.Logger
}

// DefaultClientTimeout is how long clients wait for a result unless they are
// told otherwise: the default of the TypeScript and Python SDKs' clients.
const DefaultClientTimeout = 60 * time.Second

const defaultParallel = 8

// Server is an MCP server. Its methods may be called from any goroutine.
type Server struct {
	config Config
	sdk    *mcpsdk.Server
	loaded chan struct{} // closed when tools were listed for the first time
	// changed: they are others than at that time, or were.
	changed atomic.Bool
	calls   sync.WaitGroup
	// endListing ends that first listing.
	endListing context.CancelFunc
	// requests are the HTTP requests that are being answered: their contexts by
	// requestHeader.
	requests sync.Map
	// answering are what was posted in sessions and has no answer yet.
	answering sync.WaitGroup
	gateway   *gateway.Gateway
	rights    rights
	short     shortList
	// handler serves HTTP; closing ends with Close.
	handler http.Handler
	closing context.Context
	close   context.CancelFunc

	mu      sync.Mutex
	closed  bool // no more calls
	ended   bool // no more answers
	offered map[string]offer
	known   map[*mcpsdk.ServerSession]*known
	owners  map[string]string // the identities that sessions over HTTP belong to, by their ids
	loose   map[Peer]*session // what connections without a session have in common
	active  map[*call]bool
	states  map[string]*call // that have asked something, by the handle in their requestStates
	reload  sync.Mutex       // one at a time
	warned  map[string]bool  // of the last reload's problems; guarded by reload
}

// New makes a server. It begins to list the tools; clients that come meanwhile
// wait for that. Close ends it. An error says that the Config lacks something.
func New(config Config) (*Server, error) {
	if config.Turns == nil || config.Asker == nil || config.Tools == nil {
		return nil, errors.New("bug: an MCP server needs turns, an asker and tools")
	}
	config.Logger = cmp.Or(config.Logger, hclog.NewNullLogger())
	if config.Parallel <= 0 {
		config.Parallel = defaultParallel
	}
	s := &Server{
		config: config, loaded: make(chan struct{}), offered: map[string]offer{},
		known: map[*mcpsdk.ServerSession]*known{}, owners: map[string]string{}, loose: map[Peer]*session{}, active: map[*call]bool{}, states: map[string]*call{},
	}
	s.rights.s, s.short.s = s, s
	options := &mcpsdk.ServerOptions{
		Instructions: instructionsOf(config.Search),
		Capabilities: &mcpsdk.ServerCapabilities{Tools: &mcpsdk.ToolCapabilities{ListChanged: true}},
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.gateway = gateway.New(s.asHost())
	s.gateway.Declare(options)
	s.sdk = mcpsdk.NewServer(&mcpsdk.Implementation{Name: "toolhost", Title: "toolhost", Version: config.Version}, options)
	s.gateway.Attach(s.sdk)
	s.handler = s.newHandler()
	s.sdk.AddReceivingMiddleware(s.survive, s.finish, s.knowOwner, s.rights.mayDo, s.negotiate, s.knowLevel, s.whenLoaded, s.gateway.Receive, s.untilClosed)
	s.sdk.AddSendingMiddleware(s.whenChanged, s.gateway.Send, wholeRequests)
	s.sdk.AddTool(statusTool(), s.status)
	if config.Search {
		s.short.list()
	}
	listing, cancel := context.WithTimeout(context.Background(), maxListing)
	s.endListing = cancel
	s.calls.Go(func() {
		defer close(s.loaded)
		defer cancel()
		s.Reload(listing)
	})
	return s, nil
}

// maxListing bounds the first listing.
const maxListing = 2 * time.Minute

const instructions = "Tools run supervised and in a sandbox: each call has a timeout, at which all of its processes are killed. " +
	"A result that begins with [TIMEOUT], [CANCELLED], [DENIED], [OOM], [LIMIT] or [FAILED] says what happened and what to do next; what follows it is partial output. " +
	"More time can be asked for with the tool's own timeout argument, if it has one. session_status tells what calls were made and how the host is."

func instructionsOf(search bool) string {
	if !search {
		return instructions
	}
	return "Look for a tool with " + findTool + ", and call it with the tool that is named there. " + instructions
}

// whenLoaded has requests about tools wait until there are any, and calls until
// theirs is there.
func (s *Server) whenLoaded(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		if one, is := r.(*mcpsdk.CallToolRequest); is {
			return s.whenKnown(ctx, one, func() (mcpsdk.Result, error) { return next(ctx, method, r) })
		}
		if method == "tools/list" && !s.config.Search {
			select {
			case <-s.loaded:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		return next(ctx, method, r)
	}
}

// whenChanged keeps back that the tools have changed as long as they are those
// that were listed first: no client has seen others.
func (s *Server) whenChanged(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		if gateway.IsListChange(method) && !s.changed.Load() {
			return nil, nil
		}
		return next(ctx, method, r)
	}
}

// untilClosed ends what a client listens to when the server is closed: it would
// hold its HTTP request for ever.
func (s *Server) untilClosed(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		if method == "subscriptions/listen" {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(s.closing, cancel)()
		}
		return next(ctx, method, r)
	}
}

// Reload lists the tools anew; where anything has changed, clients are told.
// What cannot be offered is logged and returned, and the rest is offered.
func (s *Server) Reload(ctx context.Context) (problems []error) {
	s.reload.Lock()
	defer s.reload.Unlock()
	tools, problems := s.config.Tools(ctx)
	s.gateway.Describe()
	fresh := map[string]offer{}
	for _, t := range tools {
		o, err := s.newOffer(t)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		fresh[t.Name] = o
	}
	s.offer(fresh)
	ofServers := s.gateway.Offer()
	s.hasChanged(s.config.Servers != nil)
	before := s.warned
	s.warned = map[string]bool{}
	s.warn(before, "not all tools are offered as they are configured", problems)
	s.warn(before, "a server is not offered as it is", ofServers)
	return append(problems, ofServers...)
}

// hasChanged notes, once the first list was loaded, whether what is offered has changed.
func (s *Server) hasChanged(has bool) {
	select {
	case <-s.loaded:
		s.changed.Store(s.changed.Load() || has)
	default:
	}
}

// warn logs the problems that the last reload did not have.
func (s *Server) warn(before map[string]bool, what string, problems []error) {
	for _, problem := range problems {
		if s.warned[problem.Error()] = true; !before[problem.Error()] {
			s.config.Logger.Warn(what, "problem", problem)
		}
	}
}

// offer offers these tools and no others. Who sees what is offered finds it with
// the SDK as well.
func (s *Server) offer(fresh map[string]offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.offered
	s.offered = fresh
	s.hasChanged(!maps.EqualFunc(before, fresh, func(a, b offer) bool { return a.raw == b.raw }))
	for _, name := range slices.Sorted(maps.Keys(fresh)) {
		if fresh[name].raw != before[name].raw {
			s.list(fresh[name])
		}
	}
	var gone []string
	for name := range before {
		if _, still := fresh[name]; !still {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 && !s.config.Search {
		s.sdk.RemoveTools(gone...)
	}
}

// list shows a tool to clients, unless they have the short list.
func (s *Server) list(o offer) {
	if !s.config.Search {
		s.sdk.AddTool(o.tool, s.call)
	}
}

// meant is the name of the tool that a call is for.
func (s *Server) meant(p *mcpsdk.CallToolParamsRaw) string {
	if !s.config.Search || p.Name == turn.StatusTool {
		return p.Name
	}
	name, _, _ := within(p)
	return name
}

// know offers a tool from now on, or says why it cannot be offered.
func (s *Server) know(ctx context.Context, name string) error {
	if s.offerOf(name).tool != nil {
		return nil
	}
	if s.config.Find == nil {
		return &catalog.NotFoundError{Name: name}
	}
	t, err := s.config.Find(ctx, name)
	if err != nil {
		return err
	}
	o, err := s.newOffer(t)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.offered[name]; !known {
		s.offered[name] = o
		s.hasChanged(true)
		s.list(o)
	}
	return nil
}

// Abort ends all calls that run, by their kill ladders, for this reason. It does not wait,
// and takes new calls; see Close. Only Kill cuts their grace short.
func (s *Server) Abort(reason api.Reason) {
	for _, c := range s.running() {
		c.abort(reason)
	}
}

func (s *Server) running() []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.active))
}

// Drain takes no more calls; those that run go on.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// Close takes no more calls, aborts those that run, and returns when they are
// over and the sessions over HTTP have ended. The first listing of tools may end
// by itself for a second.
func (s *Server) Close() {
	s.Drain()
	s.Abort(api.ReasonShutdown)
	defer time.AfterFunc(lastWords, s.endListing).Stop()
	s.close()
	s.calls.Wait()
	s.endSessions()
}

// timeout is how long a client waits for a result; budget.Infinite for ever.
func (s *Server) timeout(client string) time.Duration {
	timeout := time.Duration(0)
	if s.config.Timeout != nil {
		timeout = s.config.Timeout(client)
	}
	if timeout <= 0 {
		return DefaultClientTimeout
	}
	return timeout
}
