package httpapi

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/turn"
)

// leases are those of the turns that the Server has begun.
type leases struct {
	idle   time.Duration // Config.TurnIdle
	logger hclog.Logger

	mu      sync.Mutex
	all     map[*turn.Turn]*lease
	waiting bool // wait was called
	ends    sync.WaitGroup
}

func newLeases(c Config) *leases {
	return &leases{idle: c.TurnIdle, logger: c.Logger, all: map[*turn.Turn]*lease{}}
}

// lease is that of a turn that the Server has begun, and so has to end if nobody
// else does.
type lease struct {
	t    *turn.Turn
	idle *time.Timer

	mu   sync.Mutex
	busy int  // requests that keep it from being idle
	over bool // so is the turn, or it was idle for too long
}

// begin begins a lease. It ends with the turn.
func (s *leases) begin(t *turn.Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting { // all turns are over
		return
	}
	l := &lease{t: t}
	l.idle = time.AfterFunc(s.idle, func() { s.expire(l) })
	s.all[t] = l
	s.ends.Go(func() { s.end(l) })
}

// wait returns once all leases have ended. No more begin.
func (s *leases) wait() {
	s.mu.Lock()
	s.waiting = true
	s.mu.Unlock()
	s.ends.Wait()
}

func (s *leases) end(l *lease) {
	<-l.t.Done()
	s.mu.Lock()
	delete(s.all, l.t)
	s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.idle.Stop()
}

// expire ends a turn that nobody seems to want any more.
func (s *leases) expire(l *lease) {
	l.mu.Lock()
	expired := l.busy == 0 && !l.over
	l.over = l.over || expired
	l.mu.Unlock()
	if expired {
		s.logger.Warn("ending a turn that was idle for too long", "turn", l.t.ID(), "idleMs", s.idle.Milliseconds())
		l.t.End()
	}
}

// hold keeps a turn from being idle until release is called. One that somebody
// else has begun never is.
func (s *leases) hold(t *turn.Turn) (release func(), err error) {
	s.mu.Lock()
	l := s.all[t]
	s.mu.Unlock()
	if isOver(t) {
		return nil, notActive(t.ID())
	}
	if l == nil {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, notActive(t.ID())
	}
	l.busy++
	l.idle.Stop()
	return l.release(s.idle), nil
}

// holdFor keeps a turn from being idle for as long as one below it is active.
func (s *leases) holdFor(parent, child *turn.Turn) {
	release, err := s.hold(parent)
	if err != nil {
		return // it is over, and has aborted its children
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting { // all turns are over
		release()
		return
	}
	s.ends.Go(func() {
		<-child.Done()
		release()
	})
}

func isOver(t *turn.Turn) bool {
	select {
	case <-t.Done():
		return true
	default:
		return false
	}
}

func (l *lease) release(idle time.Duration) func() {
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.busy--; l.busy == 0 && !l.over {
			l.idle.Reset(idle)
		}
	}
}
