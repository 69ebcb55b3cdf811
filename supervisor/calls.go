package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/cpus"
	"github.com/toolhost/toolhost/supervisor/internal/call"
	"github.com/toolhost/toolhost/supervisor/internal/egress"
	"github.com/toolhost/toolhost/supervisor/internal/kept"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// Call is a call that has been started. Its methods are safe for concurrent use.
type Call struct{ call *call.Call }

// ID returns the ID of the call in its events and result.
func (c *Call) ID() string { return c.call.ID() }

// Done returns a channel that is closed when the result is ready.
func (c *Call) Done() <-chan struct{} { return c.call.Done() }

// Gone returns a channel that is closed when the result is ready and the call has no
// process left. If a process could not be killed, that is later than Done, or never.
// Processes kept for other calls do not count.
func (c *Call) Gone() <-chan struct{} { return c.call.Gone() }

// Result waits for the result and returns it.
func (c *Call) Result() *api.Result { return c.call.Result() }

// Abort starts the kill ladder; a second Abort while it runs kills at once. While
// the result is being made, Abort cuts slow work short. After the end of the call it
// does nothing. Abort does not wait.
func (c *Call) Abort(reason api.Reason) { c.call.Abort(reason) }

// Current returns the call's CPU time so far and its present memory and processes, as far
// as there are cgroup controllers for them. ok is false while the call has no processes.
func (c *Call) Current() (now cgroup.Current, ok bool) { return c.call.Current() }

// Call runs one call to its end. It always returns a result, even for a tool that does not
// exist. The end of ctx aborts the call, and the result then says so; if ctx is over already,
// nothing starts.
func (s *Supervisor) Call(ctx context.Context, request Request) *api.Result {
	return s.Start(ctx, request).Result()
}

// Start starts a call. It returns once the call is prepared, which includes a
// Describe for a binary's first call. The end of ctx aborts the call; if ctx is over already,
// nothing starts.
func (s *Supervisor) Start(ctx context.Context, request Request) *Call {
	p, err := s.preparer.Prepare(ctx, request, s.config.Profile, prepare.ForCall)
	return s.start(ctx, &caller{s: s, p: p}, err)
}

func (s *Supervisor) start(ctx context.Context, k *caller, err error) *Call {
	c, run, err := s.admit(k, err)
	if err != nil {
		s.doubtAfter(ctx, err)
		k.warm.Leave()
		c.Refuse(err)
	} else {
		s.tasks.Run("own", func() { run(ctx) })
	}
	return &Call{c}
}

// admit registers a prepared call and returns the function that runs it. On an error the call
// must be refused.
func (s *Supervisor) admit(k *caller, err error) (c *call.Call, run func(context.Context), _ error) {
	p := k.p
	switch keep := p.Request.Keep; {
	case err != nil:
	case keep != nil:
		k.line, err = s.kept.Join(kept.KeyOf(p), *keep)
	case p.Request.Prestart > 0 && p.Work == prepare.ForCall && p.NotAhead() == "":
		k.line = s.kept.Ahead(p)
	}
	c = call.New(p, k.base())
	if err == nil {
		err = s.register(c)
	}
	if err != nil {
		k.line.Part()
		return c, nil, err
	}
	return c, func(ctx context.Context) {
		defer cpus.Busy()()
		defer s.unregister(c) // when nothing of the call is left
		defer k.line.Part()
		c.Run(ctx)
		k.warm.Leave()
		if k.line == nil && c.HadProcesses() {
			s.maker.Spare(p)
		}
	}, nil
}

// caller holds what the supervisor gives a call for its start. After the start only the call
// uses it.
type caller struct {
	s     *Supervisor
	p     *prepare.Prepared
	warm  *process.Warm // what was made for its processes early; nil for nothing
	line  *kept.Line
	guest *kept.Guest // nil before there are processes
}

// base is what a call needs of its supervisor.
func (k *caller) base() call.Base {
	s := k.s
	return call.Base{
		Enter: k.enter, Take: k.take, Start: k.start, Reached: k.reached, Ending: k.ending,
		Load: s.gate.Load, Stuck: &s.stuck, Looks: s.looks, Hidden: s.hidden, SpillDir: s.config.SpillDir, SpillTotal: s.config.SpillTotalBytes,
		Tasks: &s.tasks, Log: s.config.Logger,
	}
}

func (k *caller) take(c *call.Call) (call.Tree, call.Peer) {
	if k.guest = k.line.Take(c, counts(k.p)); k.guest == nil {
		return nil, nil
	}
	if _, _, granted := k.p.Policy.Grants(); granted { // whose network is to be served first
		return k.guest, nil
	}
	k.p.Policy.Close()
	return k.guest, k.guest.Conn()
}

func (k *caller) reached(c *call.Call, by time.Time, livesOn, drain bool) *api.Network {
	return egress.Reached(k.guest.Process, k.p, c, by, livesOn, drain)
}

func (k *caller) ending(by time.Time, drain bool) {
	if n := k.guest.Network(); n != nil {
		n.Ending(by, drain)
	}
}

// counts returns how many calls of a kept process the call counts as.
func counts(p *prepare.Prepared) int {
	if p.Describes() {
		return 0
	}
	return 1
}

// start connects a call to the process that was reserved for it, or to a new one, or says
// why it cannot.
func (k *caller) start(ctx context.Context, c *call.Call) {
	defer k.p.Policy.Close()
	if k.guest != nil {
		if n := k.guest.Network(); n != nil {
			if err := n.Arrive(ctx, k.p, c, c.Launching); err != nil {
				c.StartFailed(err)
				return
			}
		}
		c.Connected(k.guest.Conn())
		return
	}
	made, err := k.s.maker.Start(ctx, k.p, k.warm, c.Log, c, process.Progress{
		Launching: c.Launching,
		Spawned: func(made *process.Process) {
			k.guest = k.line.First(made, c, counts(k.p))
			c.Spawned(k.guest)
		},
	})
	if err != nil {
		k.s.doubtAfter(ctx, err)
		c.StartFailed(err)
		return
	}
	c.Connected(made.Conn())
}

// hidden returns toolhost's own folders, which no result names to a tool.
func (s *Supervisor) hidden() []string {
	own := append(s.config.OwnDirs(), s.users)
	if s.config.Own != nil {
		own = append(own, s.config.Own().Hidden...)
	}
	return own
}

// errClosed is the error of calls after Close.
var errClosed = errors.New("the supervisor is closed")

func (s *Supervisor) register(c *call.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return outcome.Refuse(api.StatusCancelled, api.ReasonShutdown, errClosed)
	}
	s.calls[c] = struct{}{}
	s.active.Add(1)
	return nil
}

func (s *Supervisor) unregister(c *call.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c)
	s.active.Done()
}
