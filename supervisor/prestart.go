package supervisor

import (
	"cmp"
	"context"
	"errors"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor/internal/kept"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/pace"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// Prestarted describes the processes that wait for a call each. Its Stocks have the
// names of the requests.
type Prestarted = kept.Parked

// Prestart starts processes for calls of these requests, as many as the field Prestart
// of each says, before the first call and again whenever one is taken, when nothing
// else is being started. It replaces the requests of earlier Prestarts: waiting
// processes for other requests end. It does not wait for the starts.
//
// Without it, a request's Prestart takes effect with its first call, until no call
// came for DefaultKeepIdle.
//
// A call gets a process only if it would start the same one itself: the same
// executable (by hash), arguments, environment, limits and policy, with the same
// folders behind the granted paths and the same mounts below them. The process serves
// one call and ends with it. Explain says why a request cannot have any.
func (s *Supervisor) Prestart(requests []Request) { s.kept.Declare(requests) }

// Prestarted describes the processes that wait now.
func (s *Supervisor) Prestarted() Prestarted { return s.kept.Parked() }

// source returns the functions that start processes before their calls.
func (s *Supervisor) source() kept.Source {
	return kept.Source{
		Prepare: s.prepareAhead, Start: s.startAhead,
		Starting: func() bool { return s.maker.Starts.UnderWay() > 0 }, Busy: pace.Busy,
		Budget: s.config.Prestart, Logger: s.config.Logger,
	}
}

func (s *Supervisor) prepareAhead(ctx context.Context, request Request) (*prepare.Prepared, error) {
	p, err := s.preparer.Prepare(ctx, request, s.config.Profile, prepare.ForAhead)
	if refused, ok := errors.AsType[*outcome.Refusal](err); ok {
		err = refused.Err
	}
	if err == nil && p.NotAhead() != "" {
		err = errors.New(p.NotAhead())
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// startAhead asks the tool to describe itself, so that its first-time work is done before
// its call comes.
func (s *Supervisor) startAhead(ctx context.Context, p *prepare.Prepared, l process.Listener, spawned func(*process.Process)) error {
	starting, cancel := context.WithTimeout(ctx, p.StartTimeout)
	defer cancel()
	made, err := s.maker.Start(starting, p, nil, s.config.Logger, l, process.Progress{Launching: func() {}, Spawned: spawned})
	if err != nil {
		return err
	}
	describing, cancel := context.WithTimeout(ctx, cmp.Or(p.Request.Tool.DescribeTimeout, s.preparer.Operation(budget.MessageRoute, p.Request).Timeout))
	defer cancel()
	_, err = made.Conn().Describe(describing)
	return err
}
