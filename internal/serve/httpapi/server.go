package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/turn"
)

// Catalogue returns the tools, or the one of a name that is not empty, and why
// configured ones are missing. It is called anew for each request, by several at once,
// and gives up describing tools when ctx ends.
type Catalogue interface {
	Tools(ctx context.Context, name string) (tools []api.Tool, problems []error)
}

// History is what has been journalled; *journal.Reader is one.
type History interface {
	Turns(api.Filter) ([]api.TurnSummary, error)
	Calls(api.Filter) ([]api.CallSummary, error)
	Events(turnID string, after int64, yield func(journal.Event) bool) error
	Result(turnID, callID string) ([]byte, error)
	Owner(turnID string) (string, error)
}

// Fleet is the workers that calls may go to.
type Fleet interface {
	Workers() api.Workers
	// Drain has a worker take no more calls, and end when it has none. It does not wait,
	// and reports whether the worker is known.
	Drain(worker string) bool
	// Knows says whether a worker is configured or was heard, and was not removed.
	Knows(worker string) bool
	// Remove ends what a worker does, and lets it do nothing more. It reports whether the
	// worker is known.
	Remove(worker string) (known bool, err error)
}

// Config of a Server. Turns and Tools must be set.
type Config struct {
	// Turns runs them. The Server never closes it.
	Turns *turn.Manager
	// Tools lists what they can call.
	Tools Catalogue
	// Fleet is nil without one.
	Fleet Fleet
	// History is nil where nothing is journalled. It serves turns that are over;
	// those that are active have their own (turn.Config).
	History History
	// Token lets a TCP client in that bears it, as an administrator; empty lets none
	// in. See LoadToken.
	Token string
	// MetricsToken admits monitoring to the metrics and to nothing else; empty
	// admits nobody.
	MetricsToken string
	// Tokens are those of others, and the sessions of browsers; nil knows neither.
	Tokens *tokens.Store
	// Book, if not nil, says who users of the machine and bearers of tokens are. It is
	// asked for each request. nil knows the daemon's own user and root, as administrators.
	Book func() access.Book
	// Claim, if not nil, fills in what turns of an identity have: which tools they
	// may use, and how many there may be.
	Claim func(access.Identity, *turn.Spec)
	// Refused and Note, if not nil, are told what was not allowed, and what was done
	// beside turns. They must return soon, and are called by several requests at once.
	Refused func(Refusal)
	Note    func(who, action, what string)
	// Mounts are served beside the API, by their paths.
	Mounts map[string]Mount
	// PublicURL is where clients find the daemon behind a proxy, or from elsewhere;
	// empty is on this machine alone. TLS says that TCP listeners speak it. Proxies are
	// the addresses of those that are believed whom they ask for.
	PublicURL string
	TLS       bool
	Proxies   []netip.Prefix
	// Budget, if not nil, is that of turns that say nothing of it.
	Budget func() budget.TurnSpec
	// Prestarted gives the processes that wait for calls; it may be nil.
	Prestarted func() []api.Prestarted
	// Ready says why no call can be made at present; nil is always ready. Where toolhost doctor
	// does not know it, the error is an [api.Error] with a message and a remedy.
	Ready func() error
	// Pages serves everything outside of /api, to everybody: what it shows must open
	// nothing. nil answers not found.
	Pages http.Handler
	// Metrics answers /metrics; nil is not found. A few answers are made at once,
	// and each is kept until it is written.
	Metrics http.Handler
	// Version is part of the answer to a health check.
	Version string
	// MaxBodyBytes bounds a request's body; 0 is 8 MiB.
	MaxBodyBytes int64
	// MaxStreams bounds the streams of events that are open at once; 0 is 4096. One
	// identity may have as many of them as are left.
	MaxStreams int
	// Heartbeat is the beat of comments in a stream that has nothing to say; 0
	// is 15 s. Stall is how long a client may take nothing, or give nothing of
	// the request that it has begun; 0 is 10 s.
	Heartbeat, Stall time.Duration
	// TurnIdle ends a turn that has run and asked nothing for so long, has no active turn
	// below it, and was told nothing of the model, unless the stream that opened it is still
	// there; 0 is one hour.
	TurnIdle time.Duration
	// Logger is silent if nil. No secret is ever given to it.
	Logger hclog.Logger
}

// Mount is a handler of its own protocol, for those who have one of the roles. It
// finds out who asks by CallerOf.
type Mount struct {
	Need    access.Need
	Handler http.Handler
}

const (
	defaultBodyBytes = 8 << 20
	defaultStreams   = 4096
	defaultHeartbeat = 15 * time.Second
	defaultStall     = 10 * time.Second
	defaultTurnIdle  = time.Hour
	maxHeaderBytes   = 16 << 10
	keepAlive        = 2 * time.Minute
)

// authenticator finds out who asks, from where, and what they may.
type authenticator struct {
	config  Config
	guesses *guesses
	// public is Config.PublicURL, nil without one.
	public      *url.URL
	crossOrigin *http.CrossOriginProtection
	routed      *http.ServeMux // all there is
}

// Server is the API. Its methods may be called from any goroutine.
type Server struct {
	authenticator
	handler  http.Handler
	schemas  schemas
	open     *connections // also of calls' own servers
	intake   *intake
	links    *links
	leases   *leases
	streams  *streams
	scrapes  scrapes
	lists    chan struct{}          // held while a list of the past is being read
	address  atomic.Pointer[string] // URL of TCP, or nil
	draining atomic.Bool
	closing  context.Context // ended by Close: streams end
	close    context.CancelFunc
}

// New makes the API, and listens nowhere: see HTTP. An error says what the Config lacks,
// or that PublicURL is not a URL.
func New(config Config) (*Server, error) {
	if config.Turns == nil || config.Tools == nil {
		return nil, errors.New("bug: the HTTP API needs turns and tools")
	}
	files := maxConnections()
	complete(&config, files)
	schemas, err := published()
	if err != nil {
		return nil, err
	}
	s := &Server{
		authenticator: authenticator{config: config, guesses: newGuesses(time.Now), crossOrigin: http.NewCrossOriginProtection()},
		schemas:       schemas, open: newConnections(files, config.Logger), intake: newIntake(config.Stall), streams: newStreams(config.MaxStreams), links: newLinks(time.Now),
		scrapes: scrapes{config.Metrics, make(chan struct{}, maxScrapes)}, lists: make(chan struct{}, 1), leases: newLeases(config),
	}
	s.closing, s.close = context.WithCancel(context.Background())
	if err := s.setPublic(); err != nil {
		return nil, err
	}
	s.routed = s.mux()
	s.handler = s.guarded(s.routed)
	return s, nil
}

func (s *authenticator) setPublic() (err error) {
	if s.config.PublicURL == "" {
		return nil
	}
	if s.public, err = url.Parse(s.config.PublicURL); err != nil || s.public.Host == "" {
		return fmt.Errorf("the public URL %q is not a URL", s.config.PublicURL)
	}
	if err := s.crossOrigin.AddTrustedOrigin(originOf(s.public)); err != nil {
		return fmt.Errorf("the public URL %q is not an origin: %w", s.config.PublicURL, err)
	}
	return nil
}

func complete(c *Config, files int) {
	c.MaxBodyBytes = cmp.Or(c.MaxBodyBytes, defaultBodyBytes)
	c.MaxStreams = min(cmp.Or(c.MaxStreams, defaultStreams), files/2)
	c.Heartbeat = cmp.Or(c.Heartbeat, defaultHeartbeat)
	c.Stall = cmp.Or(c.Stall, defaultStall)
	c.TurnIdle = cmp.Or(c.TurnIdle, defaultTurnIdle)
	if c.Book == nil {
		c.Book = func() access.Book { return access.Book{Admins: ownUsers()} }
	}
	if c.Claim == nil {
		c.Claim = func(i access.Identity, spec *turn.Spec) {
			spec.View = func(t turn.Tool) (turn.Tool, bool) { return t, i.MayUse(t.Name) }
		}
	}
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger())
}

// ownUsers may do everything: root, and the daemon's own user.
func ownUsers() []uint32 { return []uint32{0, uint32(os.Geteuid())} }

// ServeHTTP implements http.Handler. Requests of a unix socket need the context
// that HTTP gives them.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// HTTP is a server for the API, with all its limits. Serve may be called on it
// for several listeners; its Shutdown ends streams, and so the turns that were
// opened by one.
func (s *Server) HTTP() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	server := &http.Server{
		Handler: s, Protocols: protocols, MaxHeaderBytes: maxHeaderBytes, DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout: s.config.Stall, IdleTimeout: keepAlive,
		BaseContext: s.listens,
		ConnContext: s.open.withPeer,
		ConnState:   s.open.note,
		ErrorLog:    log.New(s.config.Logger.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}), "", 0),
	}
	server.RegisterOnShutdown(s.Close)
	return server
}

// Drain refuses new turns and batches from now on, with status 503; what runs goes on, and
// is watched, answered and ended as before.
func (s *Server) Drain() { s.draining.Store(true) }

// Close ends all streams, and with them the turns that were opened by one. It does not wait;
// see Wait. It may be called again.
func (s *Server) Close() { s.close() }

// Wait returns once nothing of the Server's own runs any more. Call it when all
// turns are over, and no more can begin.
func (s *Server) Wait() { s.leases.wait() }
