package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/sandbox"
)

const (
	// trialEvery is the least time between two trial calls; afterSuccess is the
	// least time from one that succeeded to the next.
	trialEvery   = 2 * time.Second
	afterSuccess = 500 * time.Millisecond
	// trialTimeout bounds a trial call: its process needs less even on a starved machine.
	trialTimeout = 40 * time.Second
	// verdictTime bounds the wait of Ready for the first trial after a doubt.
	verdictTime = 3 * time.Second
	// trialFiles are held beside a trial call, which has fewer than others.
	trialFiles = 32
)

// readiness is whether calls can be made on this machine. It is in doubt from a
// start that failed for the host's own reasons until a trial call succeeds.
type readiness struct {
	stop    context.Context // ends the trials
	stopNow context.CancelFunc
	trials  sync.WaitGroup

	mu      sync.Mutex
	doubted bool
	next    time.Time     // when a trial may be made again
	failure error         // of the last trial, or what raised the doubt
	verdict chan struct{} // closed after the first trial since the doubt
	closed  bool
}

func (r *readiness) init() { r.stop, r.stopNow = context.WithCancel(context.Background()) }

// close ends the trials and waits for the last of them.
func (r *readiness) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stopNow()
	r.trials.Wait()
}

func (s *Supervisor) offered() sandbox.Features {
	s.ready.mu.Lock()
	defer s.ready.mu.Unlock()
	return s.features
}

func (s *Supervisor) offer(found sandbox.Features) {
	s.ready.mu.Lock()
	defer s.ready.mu.Unlock()
	s.features = found
}

// Ready returns nil if, as far as is known, calls can be made. Otherwise the error says why
// this machine cannot make calls and what to do, or that the supervisor is closed. If a start
// has just failed for such a reason, Ready waits up to three seconds for a trial call.
func (s *Supervisor) Ready() error {
	r := &s.ready
	r.mu.Lock()
	verdict := r.verdict
	r.mu.Unlock()
	if verdict != nil {
		select {
		case <-verdict:
		case <-r.stop.Done():
		case <-time.After(verdictTime):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	why := r.failure
	switch {
	case r.closed:
		why = errClosed
	case !r.doubted:
		return nil
	}
	return fmt.Errorf("no call can be made: %w", why)
}

// doubt has trial calls made until one succeeds.
func (s *Supervisor) doubt(why error) {
	r := &s.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.doubted || r.closed {
		return
	}
	r.doubted, r.failure, r.verdict = true, withRemedy(why), make(chan struct{})
	s.config.Logger.Warn("cannot start a call because of this machine: trying until one starts", "error", r.failure)
	r.trials.Go(s.tryUntilReady)
}

// doubtAfter is doubt where a start that nobody has given up has failed, and
// others would, too.
func (s *Supervisor) doubtAfter(ctx context.Context, err error) {
	if ctx.Err() != nil || !sandbox.OfTheHost(err) {
		return
	}
	if forgot := s.host.Forget(); forgot != nil {
		s.config.Logger.Warn("cannot forget an earlier trial call", "error", forgot)
	}
	s.doubt(err)
}

func (s *Supervisor) tryUntilReady() {
	r := &s.ready
	for {
		r.mu.Lock()
		wait := time.Until(r.next)
		r.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-r.stop.Done():
			return
		}
		if s.judge(s.tryCall()) {
			return
		}
	}
}

// judge records what a trial came to; true ends the doubt.
func (s *Supervisor) judge(err error) bool {
	r := &s.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next, r.doubted = time.Now().Add(trialEvery), err != nil
	if err == nil {
		r.next = time.Now().Add(afterSuccess)
		s.config.Logger.Info("calls can be made again")
	} else {
		r.failure = withRemedy(err)
	}
	if r.verdict != nil {
		close(r.verdict)
		r.verdict = nil
	}
	return err == nil
}

// tryCall makes a trial call that needs no less than others.
func (s *Supervisor) tryCall() (err error) {
	ctx, cancel := context.WithTimeout(s.ready.stop, trialTimeout)
	defer cancel()
	for range trialFiles {
		spare, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer spare.Close()
	}
	group, err := s.groups.NewGroup("trial-"+rand.Text(), cgroup.Limits{})
	if err != nil {
		return err
	}
	found, err := s.host.Probe(ctx, group.Fork)
	if err == nil {
		err = found.Untried()
	}
	if err == nil && s.offered().Untried() != nil {
		s.offer(found)
	}
	return errors.Join(err, group.Kill(), group.WaitEmpty(ctx), group.Remove())
}

// withRemedy adds what to do to an error that does not say so.
func withRemedy(err error) error {
	if remedy := sandbox.Remedy(err); remedy != "" && !strings.Contains(err.Error(), remedy) {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}
