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

// Prepared is a call that has no process yet, with all else decided: the executable, the
// sandbox, limits, arguments and timeouts. It holds the granted paths open; Start or Close
// must follow, and nothing after that.
type Prepared struct {
	call    *caller
	refused error // what its result is made of, once it is started
}

// Own is what only a call that starts needs. Its zero value is nothing.
type Own struct {
	// Meta takes the place of the request's, if it is not nil.
	Meta   json.RawMessage
	Events chan<- api.Event
	Ask    func(context.Context, Question) Answer
	Lease  *sandbox.Lease
	// Left bounds the call's timeout; 0 does not.
	Left time.Duration
}

// Of is a request with these.
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

// Prepare looks at a call, and starts nothing of it. An error is the refusal that the call
// would meet, and Start gives the result of that. Invalid arguments are not an error: their
// refusal is the call's result. Start or Close must follow an error, too.
func (s *Supervisor) Prepare(ctx context.Context, request Request) (*Prepared, error) {
	return s.prepare(ctx, request, prepare.ForCall, func(*prepare.Prepared) {})
}

// PrepareOffer is Prepare of a call whose secrets have no values of theirs yet. It is to be
// closed, and the call prepared anew with them: an adapter, which has the secrets also when it
// is asked about the tool, is asked then.
func (s *Supervisor) PrepareOffer(ctx context.Context, request Request) (*Prepared, error) {
	return s.prepare(ctx, request, prepare.ForOffer, func(*prepare.Prepared) {})
}

// PrepareAhead is Prepare of a call that is about to start: what its processes are to be in
// is made meanwhile.
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

// WarmUp has what the call's processes are to be in, and with this lease as much of them
// as runs nothing of its tool, made beside whatever comes before Start. It does not wait, and
// does nothing for a call that may find a process.
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

// hasOwnProcess says whether a call finds no process.
func hasOwnProcess(p *prepare.Prepared) bool { return p.Request.Keep == nil && p.Request.Prestart == 0 }

// Start begins the call. When ctx ends it is aborted.
func (p *Prepared) Start(ctx context.Context, own Own) *Call {
	k := p.call
	k.p = k.p.With(own.Of(k.p.Request))
	return k.s.start(ctx, k, p.refused)
}

// Close gives up a call that is not to start. It does not wait.
func (p *Prepared) Close() {
	p.call.warm.Leave()
	p.call.p.Close()
}

// Gone is closed once nothing is left of what was made ahead and Close given up: of what
// cannot be killed that is later, if ever.
func (p *Prepared) Gone() <-chan struct{} { return p.call.warm.Leave() }

// Timeout is the one in force. A call whose arguments are refused has none.
func (p *Prepared) Timeout() budget.Resolution { return p.call.p.Timeout }

// Grace is the grace period in force.
func (p *Prepared) Grace() time.Duration { return p.call.p.Grace }
