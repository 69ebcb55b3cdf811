package fleettest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/engine"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// Variable names the fleet that a Host is one of: local (no worker), embedded (a worker,
// and the server of package engine), or servers (a worker, and a cluster of three).
const Variable = "TOOLHOST_TEST_FLEET"

// DirVariable names a folder for what fleets keep, which is not to be below /tmp, where tests
// have their files: the worker lets calls have these. It is /var/tmp by default.
const DirVariable = "TOOLHOST_TEST_FLEET_DIR"

// Host is a fleet, for tests of a supervisor: what that has beside calls is that of the
// one that makes the calls, the worker's.
type Host struct {
	*supervisor.Supervisor
	fleet *fleet.Fleet
	where map[string]string
	end   []func() error
}

// Start begins a call.
func (h *Host) Start(ctx context.Context, r supervisor.Request) *fleet.Call {
	r.Where = h.where
	return h.fleet.Start(ctx, r)
}

// Call runs one call to its end.
func (h *Host) Call(ctx context.Context, r supervisor.Request) *api.Result {
	return h.Start(ctx, r).Result()
}

// Close ends the worker and its servers, too.
func (h *Host) Close() error {
	var errs []error
	for i := len(h.end) - 1; i >= 0; i-- {
		errs = append(errs, h.end[i]())
	}
	h.end = nil
	return errors.Join(errs...)
}

// Open makes a fleet whose supervisors have a test's configuration.
func Open(ctx context.Context, c supervisor.Config) (h *Host, err error) {
	h = &Host{}
	if os.Getenv(Variable) == "local" {
		if h.Supervisor, err = supervisor.New(ctx, c); err != nil {
			return nil, err
		}
		h.end = append(h.end, h.Supervisor.Close)
		h.fleet, err = fleet.Open(ctx, fleet.Config{Supervisor: c, Host: h.Supervisor})
		return h, err
	}
	if err := h.open(ctx, c); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *Host) open(ctx context.Context, c supervisor.Config) error {
	dir, err := os.MkdirTemp(cmp.Or(os.Getenv(DirVariable), "/var/tmp"), "fleettest-")
	if err != nil {
		return err
	}
	h.end = append(h.end, func() error { return os.RemoveAll(dir) })
	p, err := newPair(h)
	if err != nil {
		return err
	}
	keyFile := filepath.Join(dir, "key")
	if err := p.worker.WriteFile(keyFile); err != nil {
		return err
	}
	//lint:ignore SA1019 it is what a test of the supervisor may still set
	adapter := c.Adapter
	c.Admission.Running = c.Admission.Slots() // what the test has set, and not the worker's Slots
	w, err := worker.Open(ctx, worker.Config{
		Name: p.name, URL: p.url, KeyFile: keyFile, Callers: []string{p.caller.Public()}, Dir: filepath.Join(dir, "run"),
		Slots: 256, Supervisor: c, Adapter: adapter, Logger: c.Logger, Ceilings: worker.Ceilings{
			Network: everyNetwork(c.Ceiling), Write: []string{"/tmp", "/usr", "/etc", "/bin", "/lib"},
		},
	})
	if err != nil {
		return err
	}
	h.Supervisor = w.Host()
	h.end = append(h.end, w.Close)
	h.fleet, err = fleet.Open(ctx, fleet.Config{
		Supervisor: c, Host: h.Supervisor, URL: p.url, Key: p.caller, Workers: map[string]string{p.name: p.worker.Public()}, WorkersOnly: true, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	h.where = map[string]string{"worker": p.name}
	h.end = append(h.end, h.fleet.Close)
	return h.awaitWorker(ctx)
}

func everyNetwork(c supervisor.Ceiling) supervisor.Ceiling {
	if c.Network == "" && len(c.Grants) == 0 {
		c.Network = sandbox.NetworkHost
	}
	return c
}

// awaitWorker waits until calls are taken.
func (h *Host) awaitWorker(ctx context.Context) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if list := h.fleet.Workers(); len(list) == 1 && list[0].State == api.WorkerTaking {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return errors.New("the worker does not come")
}

// pair are a caller and its worker.
type pair struct {
	name, url      string
	caller, worker *fleet.Key
}

func newPair(h *Host) (p pair, err error) {
	if os.Getenv(Variable) == "servers" {
		return pairOfServers()
	}
	p = pair{name: "w1"}
	if p.caller, err = fleet.NewKey(); err != nil {
		return p, err
	}
	if p.worker, err = fleet.NewKey(); err != nil {
		return p, err
	}
	e, err := engine.Start(engine.Config{Listen: "127.0.0.1:0", Caller: p.caller.Public(), Workers: map[string]string{p.name: p.worker.Public()}})
	if err != nil {
		return p, err
	}
	h.end = append(h.end, func() error { e.Close(); return nil })
	p.url = "nats://" + e.Address()
	return p, nil
}

// maxPairs are more than there are at once. Each has an account.
const maxPairs = 64

var (
	pairs    [maxPairs]pair
	nextPair atomic.Int64
	three    *Servers // which end with the process, and not when nothing refers to them
)

// startServers starts three.
var startServers = sync.OnceValue(func() (err error) {
	var parties []Party
	for i := range pairs {
		p := &pairs[i]
		p.name = fmt.Sprintf("w%d", i)
		if p.caller, err = fleet.NewKey(); err != nil {
			return err
		}
		if p.worker, err = fleet.NewKey(); err != nil {
			return err
		}
		parties = append(parties, Party{Key: p.caller.Public(), Account: p.name}, Party{Key: p.worker.Public(), Worker: p.name, Account: p.name})
	}
	if three, err = Start(Config{Number: 3, Parties: parties}); err != nil {
		return err
	}
	for i := range pairs { // the worker's server is another than the caller's as often as not
		pairs[i].url = strings.Join(three.URLs(), ",")
	}
	return nil
})

func pairOfServers() (pair, error) {
	if err := startServers(); err != nil {
		return pair{}, err
	}
	return pairs[(nextPair.Add(1)-1)%maxPairs], nil
}
