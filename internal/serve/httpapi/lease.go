package httpapi

import (
	"sync"
	"time"

	"github.com/toolhost/toolhost/turn"
)

// lease is that of a turn that the Server has begun, and so has to end if nobody
// else does.
type lease struct {
	t    *turn.Turn
	idle *time.Timer

	mu   sync.Mutex
	busy int  // requests that keep it from being idle
	over bool // so is the turn, or it was idle for too long
}

// let begins a lease. It ends with the turn.
func (s *Server) let(t *turn.Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting { // all turns are over
		return
	}
	l := &lease{t: t}
	l.idle = time.AfterFunc(s.config.TurnIdle, func() { s.expire(l) })
	s.leases[t] = l
	s.ends.Go(func() { s.endLease(l) })
}

func (s *Server) endLease(l *lease) {
	<-l.t.Done()
	s.mu.Lock()
	delete(s.leases, l.t)
	s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.idle.Stop()
}

// expire ends a turn that nobody seems to want any more.
func (s *Server) expire(l *lease) {
	l.mu.Lock()
	expired := l.busy == 0 && !l.over
	l.over = l.over || expired
	l.mu.Unlock()
	if expired {
		s.config.Logger.Warn("ending a turn that was idle for too long", "turn", l.t.ID(), "idleMs", s.config.TurnIdle.Milliseconds())
		l.t.End()
	}
}

// hold keeps a turn from being idle until release is called. One that somebody
// else has begun never is.
func (s *Server) hold(t *turn.Turn) (release func(), err error) {
	s.mu.Lock()
	l := s.leases[t]
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
	return l.release(s.config.TurnIdle), nil
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
