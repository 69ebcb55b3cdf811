package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
	"github.com/toolhost/toolhost/supervisor/internal/filelock"
	"github.com/toolhost/toolhost/supervisor/internal/kept"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
)

// enter waits for a kept process and for a lock, if the call wants them, and then
// for a slot: a call with a slot waits for nothing else. leave gives all back, and left is
// what the call may run for, or 0 for no bound.
func (k *caller) enter(ctx context.Context) (leave func(), left time.Duration, err error) {
	s, p, line := k.s, k.p, k.line
	var held []func()
	leave = func() {
		for i := len(held) - 1; i >= 0; i-- {
			held[i]()
		}
	}
	shared := p.Request.Keep != nil && p.Request.Keep.Shared
	if p.Request.Keep == nil {
		line = nil // its processes are not waited for
	}
	for _, wait := range []func() (func(), error){
		func() (func(), error) { return line.Enter(ctx, shared, s.lockWait(p)) },
		func() (func(), error) { return s.lock(ctx, p, line) },
		func() (func(), error) { return s.slot(ctx, p) },
		func() (_ func(), err error) {
			if p.Request.Left != nil {
				left, err = p.Request.Left()
			}
			return func() {}, outcome.HostFailure(err)
		},
		func() (func(), error) { return func() {}, outcome.HostFailure(k.onRecord(ctx)) },
	} {
		release, err := wait()
		if err != nil {
			leave()
			return nil, 0, err
		}
		held = append(held, release)
	}
	return leave, left, nil
}

// onRecord waits until there is the call on record, and has as much of its processes made
// meanwhile as may be.
func (k *caller) onRecord(ctx context.Context) error {
	if k.p.Request.OnRecord == nil {
		return nil
	}
	k.warmUp()
	err := k.p.Request.OnRecord(ctx)
	if err != nil { // the call's end comes behind that of its processes
		select {
		case <-k.warm.Leave():
		case <-time.After(budget.AnswerMargin):
		}
	}
	return err
}

// slot waits for one of the call's pool, and then for one of all.
func (s *Supervisor) slot(ctx context.Context, p *prepare.Prepared) (release func(), err error) {
	if p.Describes() {
		return s.describeGate.Acquire(ctx, admission.Ask{})
	}
	leave, err := s.pools.enter(ctx, p.Request.Pool, p.Request.Share)
	if err != nil {
		return nil, err
	}
	if p.Request.Reserved {
		return leave, nil
	}
	free, err := s.gate.Acquire(ctx, admission.Ask{Share: shareOf(p.Request.Share)})
	if err != nil {
		leave()
		return nil, err
	}
	return func() { free(); leave() }, nil
}

// Reserve takes a slot for a call of this share that is to start with Reserved, if one is
// free at once. release gives it back, and must be called once, when the call is Gone.
func (s *Supervisor) Reserve(share Share) (release func(), ok bool) {
	return s.gate.Try(admission.Ask{Share: shareOf(share)})
}

func shareOf(s Share) admission.Share {
	return admission.Share{Key: s.Key, Running: s.Running, Waiting: s.Waiting}
}

// lockWaitEndless is how long a call without a timeout waits.
const lockWaitEndless = time.Hour

// lockWait is as long as the wait for a slot, or as the call's own timeout if that is
// longer: the calls before it may take as long.
func (s *Supervisor) lockWait(p *prepare.Prepared) time.Duration {
	wait := s.config.Admission.limits().Wait
	if p.Timeout.Timeout == budget.Infinite {
		return max(wait, lockWaitEndless)
	}
	return max(wait, p.Timeout.Timeout)
}

// lock waits until the call may use the tool's files. Errors are a refusal, ctx's
// cause, and those of the file.
func (s *Supervisor) lock(ctx context.Context, p *prepare.Prepared, line *kept.Line) (unlock func(), err error) {
	lock := p.Request.Lock
	if lock.File == "" {
		return func() {}, nil
	}
	most := s.config.Admission.limits().Queue
	if n := s.locking.Add(1); n > int64(most) {
		s.locking.Add(-1)
		return nil, outcome.Refuse(api.StatusOverloaded, api.ReasonData, fmt.Errorf("%d calls already wait for tool data: call again later", most))
	}
	defer s.locking.Add(-1)
	wait := s.lockWait(p)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, outcome.Refuse(api.StatusOverloaded, api.ReasonData,
		fmt.Errorf("another call or a kept process has held the tool's data for %s (lock %s)", wait, lock.File)))
	defer cancel()
	if line != nil {
		return line.Lock(ctx)
	}
	return filelock.Acquire(ctx, lock.File, lock.Shared, func() { s.kept.Yield(lock.File) })
}
