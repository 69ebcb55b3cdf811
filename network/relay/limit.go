package relay

import (
	"errors"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/api"
)

// errLimit ends what a session does from the first limit on that it passes.
var errLimit = errors.New("the call has passed a limit of its network")

// gauge counts the bytes of a session in one direction.
type gauge struct {
	session *session
	limit   string // its name
	most    int64  // 0 is unlimited
	sum     atomic.Int64
}

// atOnce bounds a read of n bytes: to what is left of the limit, and then to the one byte
// that passes it.
func (g *gauge) atOnce(n int) int {
	if g.most == 0 {
		return n
	}
	return int(min(int64(n), max(1, g.most-g.sum.Load())))
}

// count takes bytes that are about to be passed on, and holds them to the rate. After an
// error they must not be passed on.
func (g *gauge) count(n int) error {
	if total := g.sum.Add(int64(n)); g.most > 0 && total > g.most {
		g.session.trip(g.limit)
	}
	if g.session.tripped.Load() != nil {
		return errLimit
	}
	return g.session.pace(n)
}

// newBytes holds bytes to so many a second.
func newBytes(r int64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(r), int(max(r, 2*pipeBytes)))
}

// pace waits until the rate has room for bytes.
func (s *session) pace(n int) error {
	if s.bytes == nil {
		return nil
	}
	for n > 0 { // for a limiter never lets more than its burst through at once
		part := min(n, s.bytes.Burst())
		if err := s.bytes.WaitN(s.trafficCtx, part); err != nil {
			return err
		}
		n -= part
	}
	return nil
}

// trip has the host end the call, which may take the tool's whole grace: until then
// nothing more is passed on.
func (s *session) trip(limit string) {
	if !s.tripped.CompareAndSwap(nil, &limit) {
		return
	}
	go s.host.passed(s.spec.ID, limit)
	s.mu.Lock()
	for c := range s.conns {
		c.abort(errLimit.Error())
	}
	s.mu.Unlock()
	s.stopTraffic(errLimit)
}

// limited has a report name the limit that was passed.
func (s *session) limited(r *api.Network) *api.Network {
	if limit := s.tripped.Load(); r != nil && limit != nil {
		r.Limit = *limit
	}
	return r
}
