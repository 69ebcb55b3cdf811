// Package fleet runs calls on several machines, with the same Start, Call and Describe, the
// same requests and the same results as package supervisor on one.
//
// A Fleet passes a call to the supervisor of its own machine or to a worker (toolhost
// worker). A tool starts at most once for a call. Until a worker is told to start it, a call
// may move to another one. After that it ends with the worker's result, with the worker's
// confirmation that it has not started and never will, or as [api.StatusLost] with the output
// so far. The machine that runs the call enforces its timeout.
//
// Calls that need something that workers do not support stay on their own machine: see
// [Stays].
package fleet

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/place"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	"github.com/toolhost/toolhost/internal/cpus"
	"github.com/toolhost/toolhost/supervisor"
)

// Config configures a Fleet. With the zero value a Fleet has no workers and opens no port:
// it is only a supervisor.
type Config struct {
	// Supervisor configures this machine's supervisor.
	Supervisor supervisor.Config
	// Host is this machine's supervisor, which Close does not close. If it is nil, Open
	// makes one.
	Host *supervisor.Supervisor
	// Engine is the NATS server of this process, from package fleet/engine. URL is the URL
	// of other servers, or several separated by commas, and CA a file with the certificates
	// of their authorities. Without Engine and URL there are no workers.
	Engine  nats.InProcessConnProvider
	URL, CA string
	// Key is this caller's key.
	Key *Key
	// Workers are the public keys of workers by name. Only these workers get secrets.
	Workers map[string]string
	// Removed are names of workers whose messages are ignored; see Fleet.Remove.
	Removed []string
	// WorkersOnly keeps calls off this machine. Otherwise a call runs here if there is a
	// free slot, or no worker takes it.
	WorkersOnly bool
	// Version is shown to workers.
	Version string
	// Logger receives the log; nil discards it.
	Logger hclog.Logger
}

// Key is the nkey of a caller or worker, which NATS authenticates it by. It also signs
// messages.
type Key = seal.Key

// NewKey returns a new key. ReadKey reads a key from a file that only its owner may read.
func NewKey() (*Key, error)             { return seal.Create() }
func ReadKey(path string) (*Key, error) { return seal.ReadFile(path) }

const beatEvery = 500 * time.Millisecond

// Fleet runs calls. Its methods are safe for concurrent use.
type Fleet struct {
	config Config
	host   *supervisor.Supervisor
	conn   *nats.Conn
	life   string
	curve  *seal.Curve // what secrets are sealed by
	closed chan struct{}
	tasks  sync.WaitGroup

	mu     sync.Mutex
	ended  bool
	serial uint64
	peers  map[string]*peer
	// removed are the names of workers that are not listened to.
	removed map[string]bool
	// inboxes are those of attempts under way, over those of calls that have ended.
	inboxes map[string]*attempt
	over    overList
	calls   map[*Call]struct{}
	line    []*remote // calls of these that wait for a slot, in the order in which they began
	refused uint64
	outage  *outage // nil while there is a connection
}

// outage is a time without a connection to the engine.
type outage struct {
	why   error
	since time.Duration
}

// remedies are for what the engine refuses this caller.
var remedies = link.Remedies{
	Key:    "give the NATS servers the keys that toolhost fleet nats-config prints",
	Rights: "give the NATS servers the rights that toolhost fleet nats-config prints",
	CA:     "name the certificates of the servers' authority with fleet: {ca: FILE}",
}

// Open returns a Fleet. It makes this machine's supervisor unless Config.Host is set, and
// connects to the NATS servers if any are configured.
func Open(ctx context.Context, c Config) (*Fleet, error) {
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger())
	if c.remote() && c.Key == nil {
		return nil, errors.New("a fleet's caller needs a key")
	}
	f := &Fleet{
		config: c, host: c.Host, life: rand.Text(), closed: make(chan struct{}),
		peers: map[string]*peer{}, inboxes: map[string]*attempt{}, calls: map[*Call]struct{}{},
		removed: map[string]bool{},
	}
	for _, name := range c.Removed {
		f.removed[name] = true
	}
	var err error
	if f.curve, err = seal.NewCurve(); err != nil {
		return nil, err
	}
	if f.host == nil {
		if f.host, err = supervisor.New(ctx, c.Supervisor); err != nil {
			return nil, err
		}
	}
	if err := f.connect(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (c Config) remote() bool { return c.Engine != nil || c.URL != "" }

func (f *Fleet) connect() (err error) {
	if !f.config.remote() {
		return nil
	}
	f.conn, err = link.Connect(link.Options{
		URL: f.config.URL, InProcess: f.config.Engine, CA: f.config.CA, Key: f.config.Key, Name: "caller", Logger: f.config.Logger,
		Remedies: remedies, Trouble: f.onTrouble,
	})
	if err != nil {
		return fmt.Errorf("cannot connect to the fleet's engine: %w", err)
	}
	if _, err := f.conn.Subscribe(link.WorkerBeats, f.hear); err != nil {
		return fmt.Errorf("cannot hear workers: %w", err)
	}
	f.tasks.Go(f.beat)
	return nil
}

// onTrouble takes why there is no connection to the engine; nil is that there is one.
func (f *Fleet) onTrouble(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case why == nil:
		f.outage = nil
	case f.outage == nil:
		f.outage = &outage{why, now()}
	default:
		f.outage.why = why
	}
}

// Servers describes the NATS servers of Config.URL and the connection to them.
func (f *Fleet) Servers() (e api.Engine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.URL = f.config.URL
	if f.outage != nil {
		e.Trouble, e.Remedy = f.outage.why.Error(), cmp.Or(remedies.Of(f.outage.why), "start the servers, or see to the network between; the daemon goes on trying")
		e.SilentMs = (now() - f.outage.since).Milliseconds()
	}
	return e
}

// Start starts a call, here or on a worker. The end of ctx aborts the call.
func (f *Fleet) Start(ctx context.Context, r supervisor.Request) *Call {
	stays, where := Stays(r, f.config.Supervisor), r.Where
	r.ID, r.Where = cmp.Or(r.ID, rand.Text()), nil
	c := newCall(r.ID)
	switch {
	case len(where) == 0 && f.startsHere(ctx, c, r, len(stays) > 0):
	case !readable(r.Arguments) || !readable(r.Meta) || r.Check() != nil: // which this machine's supervisor refuses
		c.runs(f.host.Start(ctx, r))
	case len(stays) > 0:
		c.refuse(r, refusedByName(r, stays))
	case f.conn == nil: // the supervisor says what is missing
		r.Where = where
		c.runs(f.host.Start(ctx, r))
	case !f.register(c):
		c.refuse(r, aborted(r, api.ReasonShutdown))
	default:
		f.tasks.Go(func() {
			defer cpus.Busy()()
			(&remote{f: f, call: c, request: r, where: place.Want(where)}).run(ctx)
			f.unregister(c)
		})
	}
	return c
}

// readable says whether JSON can be sent to a worker.
func readable(raw json.RawMessage) bool { return len(bytes.TrimSpace(raw)) == 0 || json.Valid(raw) }

// Call runs one call to its end, like Supervisor.Call.
func (f *Fleet) Call(ctx context.Context, r supervisor.Request) *api.Result {
	return f.Start(ctx, r).Result()
}

// Describe asks a plugin binary on this machine for its tools.
func (f *Fleet) Describe(ctx context.Context, r supervisor.Request) (*supervisor.Description, *api.Result) {
	r.Where = nil
	return f.host.Describe(ctx, r)
}

// Host returns this machine's supervisor.
func (f *Fleet) Host() *supervisor.Supervisor { return f.host }

// Stays returns the names of the features that a call uses and workers do not support, which
// keep it on its own machine. A call with Where that uses one is refused. config is that
// machine's configuration.
func Stays(r supervisor.Request, config supervisor.Config) []string {
	return portable.Stays(r, config)
}

func (f *Fleet) local() bool { return f.conn == nil || !f.config.WorkersOnly }

// startsHere begins a call on this machine if it must be made here, or refused for its network,
// or there is a slot.
func (f *Fleet) startsHere(ctx context.Context, c *Call, r supervisor.Request, must bool) bool {
	if f.conn == nil || f.local() && (must || portable.BeyondCeiling(r, f.config.Supervisor)) {
		c.runs(f.host.Start(ctx, r))
		return true
	}
	release, ok := f.slotHere(nil, &r)
	if ok {
		c.runsAfter(f.host.Start(ctx, r), 0, release)
	}
	return ok
}

// slotHere reserves one of this machine's slots for a call, if there are more than calls that
// have waited for one before c; all of these where c is nil. A call that may wait for something
// else is not to have one meanwhile: it gets its slot when it starts.
func (f *Fleet) slotHere(c *remote, r *supervisor.Request) (release func(), ok bool) {
	if !f.local() || f.host.Free() <= f.waitHere(c) {
		return nil, false
	}
	if r.Keep != nil || r.Lock != (supervisor.Lock{}) || r.Pool.Running > 0 {
		return func() {}, true
	}
	release, r.Reserved = f.host.Reserve(r.Share)
	return release, r.Reserved
}

func (f *Fleet) register(c *Call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	f.calls[c] = struct{}{}
	return true
}

func (f *Fleet) unregister(c *Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.calls, c)
}

// Calls returns how many calls workers were told to start and have not ended, and how many
// wait for a worker. Calls on this machine are in neither.
func (f *Fleet) Calls() (given, waiting int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.calls {
		if c.given.Load() {
			given++
		}
	}
	return given, len(f.calls) - given
}

// Close aborts all calls, waits for their results, and closes the supervisor if Open made
// it.
func (f *Fleet) Close() error {
	f.mu.Lock()
	first := !f.ended
	f.ended = true
	calls := slices.Collect(maps.Keys(f.calls))
	f.mu.Unlock()
	if !first {
		return nil
	}
	for _, c := range calls {
		c.Abort(api.ReasonShutdown)
	}
	for _, c := range calls {
		c.Result()
	}
	close(f.closed)
	f.tasks.Wait()
	if f.conn != nil {
		_ = link.Close(f.conn, time.Second) // behind the last acknowledgements, which workers can do without
	}
	if f.config.Host == nil && f.host != nil {
		return f.host.Close()
	}
	return nil
}
