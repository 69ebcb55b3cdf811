package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
	"github.com/toolhost/toolhost/supervisor/internal/call"
	"github.com/toolhost/toolhost/supervisor/internal/describe"
	"github.com/toolhost/toolhost/supervisor/internal/egress"
	"github.com/toolhost/toolhost/supervisor/internal/kept"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/internal/tasks"
)

// Supervisor runs calls. Its methods are safe for concurrent use.
type Supervisor struct {
	config    Config
	groups    *cgroup.Root
	host      *sandbox.Host
	ready     readiness
	tasks     tasks.Tasks
	features  sandbox.Features // what the host offers; guarded by ready.mu after New
	users     string           // folder of the users that calls have
	runtime   *runtimeDir
	gate      *admission.Gate
	kept      *kept.Pool
	maker     process.Maker
	binaries  *prepare.Binaries
	preparer  prepare.Preparer
	described *describe.Cache
	pools     *pools
	egress    *egress.Relays
	// describing are those that are not described yet, in slots of their own.
	describing   *describe.Flights
	describeGate *admission.Gate
	swept        bool          // see Swept; written by New alone
	stuck        atomic.Int64  // calls that were given up, and are not gone
	locking      atomic.Int64  // calls that wait for data of tools
	looks        chan struct{} // see call.MaxLooks

	mu     sync.Mutex
	calls  map[*call.Call]struct{}
	closed bool
	active sync.WaitGroup // calls until the last of them is freed

	closing  sync.Once
	closeErr error
}

// New returns a supervisor. It chooses a cgroup for the calls, tests which
// isolation the host offers, and removes what dead supervisors left. ctx bounds
// only New itself. An error is one line that names what is missing and how to
// get it.
func New(ctx context.Context, config Config) (*Supervisor, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	limits := config.Admission.limits()
	s := &Supervisor{
		config: config, gate: admission.New(limits),
		describeGate: admission.New(admission.Limits{Running: maxDescribing, Queue: describeQueue, Wait: limits.Wait}),
		described:    describe.NewCache(), describing: describe.NewFlights(), pools: newPools(limits), calls: map[*call.Call]struct{}{},
		looks: make(chan struct{}, call.MaxLooks),
	}
	s.kept = kept.NewPool(limits, &s.tasks, s.source())
	s.ready.init()
	err := s.acquire(ctx)
	if ctx.Err() != nil { // the cause is the caller's, not the machine's
		err = fmt.Errorf("the supervisor was given up before it was ready: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	if err := s.offered().Untried(); err != nil {
		s.doubt(err)
	}
	return s, nil
}

func (s *Supervisor) acquire(ctx context.Context) (err error) {
	if s.runtime, err = openRuntimeDir(s.config.RuntimeDir); err != nil {
		return err
	}
	if s.binaries, err = prepare.OpenBinaries(s.config.StoreDir); err != nil {
		return err
	}
	if err = s.openGroups(ctx); err != nil {
		return err
	}
	left, err := s.groups.Sweep()
	if err != nil {
		s.config.Logger.Warn("cannot sweep what dead supervisors left", "error", err)
	}
	s.swept = err == nil && len(left) == 0 && !s.config.NoCgroup
	for _, one := range left {
		s.config.Logger.Warn("cannot remove the cgroup of a dead supervisor", "path", one.Path, "error", one.Err)
	}
	if s.users, err = usersDir(); err != nil {
		return err
	}
	if s.host, err = sandbox.Open(s.users); err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	s.preparer = s.newPreparer()
	s.egress = egress.New(&s.maker, s.binaries, s.offered, s.config.DenyNetworks)
	s.maker = process.Maker{
		Groups: s.groups, Host: s.host, RuntimeDir: s.runtime.path, Intake: process.NewIntake(), Starts: process.NewStarts(),
		Spares: process.NewSpares(s.config.Prestart.Sandboxes()), Load: s.gate.Load, Logger: s.config.Logger, Tasks: &s.tasks, Closing: s.ready.stop, Connect: s.egress.Connect,
	}
	return s.groups.Totals(s.config.Totals)
}

func (s *Supervisor) newPreparer() prepare.Preparer {
	c := &s.config
	return prepare.Preparer{
		Limits: c.Limits, Sandbox: c.Sandbox, Profiles: c.Profiles, Timeouts: c.Timeouts, Grace: c.Grace,
		Binaries: s.binaries, Features: s.offered, Describe: s.describe, RuntimeDir: s.runtime.path,
		Trusted: append(c.OwnDirs(), s.users), SpillDir: c.SpillDir, Own: c.Own,
		Cgroup: s.groups.Mode().String(), Controllers: s.groups.Controllers(), NoCgroup: c.NoCgroup, CheckPolicy: s.checkPolicy,
	}
}

func (s *Supervisor) openGroups(ctx context.Context) (err error) {
	if s.config.NoCgroup {
		s.groups, s.config.Totals = cgroup.None(), cgroup.Limits{}
		return nil
	}
	s.groups, err = cgroup.Open(ctx, cgroup.Options{Parent: s.config.CgroupParent, Logger: s.config.Logger})
	return err
}

// probe tests what the host offers, in a cgroup like a call's. If all processes
// die at birth (the host's cgroup was killed once, which the kernel remembers),
// the host moves to a new one.
func (s *Supervisor) probe(ctx context.Context) error {
	err := s.tryFeatures(ctx)
	if !errors.Is(err, sandbox.ErrDiedAtBirth) {
		return err
	}
	if err := s.groups.Refresh(); err != nil {
		return err
	}
	if err := s.host.Restart(); err != nil {
		return err
	}
	return s.tryFeatures(ctx)
}

func (s *Supervisor) tryFeatures(ctx context.Context) error {
	if s.config.Recall {
		if found, ok := s.host.Recall(); ok {
			s.offer(found)
			return nil
		}
	}
	group, err := s.groups.NewGroup("probe-"+rand.Text(), cgroup.Limits{})
	if err != nil {
		return err
	}
	found, err := s.host.Probe(ctx, group.Fork)
	s.offer(found)
	return errors.Join(err, group.Kill(), group.WaitEmpty(ctx), group.Remove())
}

func (s *Supervisor) release() error {
	var errs []error
	s.preparer.Close()
	if s.host != nil {
		errs = append(errs, s.host.Close())
	}
	if s.groups != nil {
		errs = append(errs, s.groups.Close())
	}
	if s.runtime != nil {
		errs = append(errs, s.runtime.close())
	}
	return errors.Join(errs...)
}

// Close aborts all calls, waits for their results, and removes the supervisor's cgroups and
// folders. Later Closes return the error of the first.
func (s *Supervisor) Close() error {
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Supervisor) close() error {
	s.mu.Lock()
	s.closed = true
	var running []*call.Call
	for c := range s.calls {
		running = append(running, c)
	}
	s.mu.Unlock()
	s.ready.close()
	for _, c := range running {
		c.Abort(api.ReasonShutdown)
	}
	s.active.Wait()
	s.maker.Spares.Drop()
	s.kept.Close()
	s.egress.Close()
	if left := s.tasks.Wait(budget.AnswerMargin); len(left) > 0 {
		s.config.Logger.Warn("goroutines of calls have not ended: the kernel or a reader of output holds them", "names", left)
	}
	return s.release()
}

// EndIdle ends kept processes that no call is using, and waiting sandboxes, for example
// after a change of the configuration. It does not wait, and does not affect those in use.
func (s *Supervisor) EndIdle() {
	s.maker.Spares.Drop()
	s.kept.EndIdle()
}

// Swept reports whether New made sure that no process is left of dead supervisors with the
// same parent cgroup. It is false without cgroups.
func (s *Supervisor) Swept() bool { return s.swept }

// Host describes what a supervisor found on this machine, and its load.
type Host struct {
	Cgroup string `json:"cgroup"`
	Place  string `json:"place"`
	// Features are the features of the sandbox.
	Features []sandbox.Finding `json:"features"`
	Health
	// Kept is the number of kept processes, in use or idle.
	Kept int `json:"kept"`
	// Prestarted describes the processes that wait for a call each.
	Prestarted Prestarted `json:"-"`
	Sandboxes  Sandboxes  `json:"-"`
}

// Sandboxes counts the sandboxes that are made after a call for similar later calls: Waiting
// is how many wait, Taken how many calls have used one.
type Sandboxes struct {
	Waiting int
	Taken   int64
}

// Health is the load of the host, which models may know.
type Health struct {
	Running int `json:"running"`
	// Waiting counts the calls that wait for a slot, for a slot of their Pool, or for
	// a tool's data.
	Waiting int `json:"waiting"`
	// Stuck counts unkillable calls whose processes still exist; each occupies a slot.
	Stuck int `json:"stuck"`
}

// Health returns the load.
func (s *Supervisor) Health() Health {
	running, waiting := s.gate.Load()
	return Health{Running: running, Waiting: waiting + int(s.locking.Load()) + s.pools.waiting(), Stuck: int(s.stuck.Load())}
}

// Free returns the number of free slots, less the calls that wait for one; it may be
// negative. Calls that wait for a slot of their Pool do not count.
func (s *Supervisor) Free() int {
	running, waiting := s.gate.Load()
	return s.config.Admission.Slots() - running - waiting - int(s.locking.Load())
}

// Host describes the machine and the load.
func (s *Supervisor) Host() Host {
	h := Host{Cgroup: s.groups.Mode().String(), Place: s.groups.Path(), Features: s.offered().Findings(), Health: s.Health()}
	h.Sandboxes.Waiting, h.Sandboxes.Taken = s.maker.Spares.Load()
	h.Kept, h.Prestarted = s.kept.Load(), s.kept.Parked()
	return h
}

// Controller reports whether this machine can enforce the limits of a cgroup controller
// (memory, pids, cpu, io).
func (s *Supervisor) Controller(name string) bool {
	return slices.Contains(s.groups.Controllers(), name)
}
