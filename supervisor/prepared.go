package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// Prepared is a call for which everything is decided before its process starts: executable,
// sandbox, limits, arguments and timeouts. It holds the granted paths open until Start or
// Close. One of them must be called, and no other method after it.
type Prepared struct {
	call    *caller
	refused error // for the result, once the call is started
}

// Own holds the parts of a request that only a call that starts needs. The zero value sets
// none of them.
type Own struct {
	// Meta replaces the request's, if it is not nil.
	Meta   json.RawMessage
	Events chan<- api.Event
	Ask    func(context.Context, Question) Answer
	Lease  *sandbox.Lease
	// Left bounds the call's timeout; 0 means no bound.
	Left time.Duration
}

// Of returns the request with these parts set.
func (o Own) Of(r Request) Request {
	r.Events, r.Ask, r.Lease = o.Events, o.Ask, o.Lease
	if o.Meta != nil {
		r.Meta = o.Meta
	}
	if o.Left > 0 {
		r.Left = func() (time.Duration, error) { return o.Left, nil }
	}
	return r
}

// Prepare prepares a call without starting it. The error is the Refusal that the call would
// get, which Start turns into a result. Invalid arguments are not an error: the result of the
// call reports them. Start or Close must be called even after an error.
func (s *Supervisor) Prepare(ctx context.Context, request Request) (*Prepared, error) {
	return s.prepare(ctx, request, prepare.ForCall, func(*prepare.Prepared) {})
}

// PrepareOffer is like Prepare, for a call whose secrets do not have their values yet. Close
// the result, and prepare the call again with the values: only then is an adapter asked about
// its tools, for which it needs the secrets, too.
func (s *Supervisor) PrepareOffer(ctx context.Context, request Request) (*Prepared, error) {
	return s.prepare(ctx, request, prepare.ForOffer, func(*prepare.Prepared) {})
}

// PrepareAhead is like Prepare, for a call that is about to start: the cgroup of its
// processes is made at the same time.
func (s *Supervisor) PrepareAhead(ctx context.Context, request Request) (*Prepared, error) {
	var warm *process.Warm
	p, err := s.prepare(ctx, request, prepare.ForCall, func(p *prepare.Prepared) {
		if hasOwnProcess(p) && !s.maker.Spares.May(p) {
			warm = s.maker.MakeGroup(p)
		}
	})
	p.call.warm = warm
	return p, err
}

func (s *Supervisor) prepare(ctx context.Context, request Request, work prepare.Work, begin func(*prepare.Prepared)) (*Prepared, error) {
	p, err := s.preparer.PrepareBeside(ctx, request, s.config.Profile, work, begin)
	prepared := &Prepared{&caller{s: s, p: p}, err}
	if refused, known := errors.AsType[*outcome.Refusal](err); known && refused.Status == api.StatusInvalidArgs {
		err = nil
	}
	return prepared, err
}

// WarmUp makes the call's cgroup in the background and, with the lease, as much of its
// processes as does not run the tool. It does not wait, and does nothing for a call that may
// get an existing process.
func (p *Prepared) WarmUp(lease *sandbox.Lease) {
	request := p.call.p.Request
	request.Lease = lease
	p.call.p = p.call.p.With(request)
	if p.refused == nil {
		p.call.warmUp()
	}
}

func (k *caller) warmUp() {
	if hasOwnProcess(k.p) {
		k.warm = k.s.maker.WarmUp(k.p, k.warm)
	}
}

// hasOwnProcess reports whether a call always starts a process.
func hasOwnProcess(p *prepare.Prepared) bool { return p.Request.Keep == nil && p.Request.Prestart == 0 }

// Start starts the call. The end of ctx aborts it.
func (p *Prepared) Start(ctx context.Context, own Own) *Call {
	k := p.call
	k.p = k.p.With(own.Of(k.p.Request))
	return k.s.start(ctx, k, p.refused)
}

// Close releases a call that is not started. It does not wait.
func (p *Prepared) Close() {
	p.call.warm.Leave()
	p.call.p.Close()
}

// Gone returns a channel that is closed, after Close, once nothing is left of what was made
// ahead. If a process cannot be killed that may be never.
func (p *Prepared) Gone() <-chan struct{} { return p.call.warm.Leave() }

// Timeout returns the timeout in force, or the zero value if the arguments were refused.
func (p *Prepared) Timeout() budget.Resolution { return p.call.p.Timeout }

// Grace returns the grace period in force.
func (p *Prepared) Grace() time.Duration { return p.call.p.Grace }
