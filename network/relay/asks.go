package relay

import (
	"context"
	"sync"
	"time"
)

const (
	// maxAsks bounds the questions of a session that wait for an answer.
	maxAsks = 8
	// onceTime is how long an approval of one connection waits for it, where the
	// tool had given up before people answered.
	onceTime = 2 * time.Minute
)

// asks are a session's questions about names that are not granted. What was
// answered is the call's to remember.
type asks struct {
	mu      sync.Mutex
	waiting map[Ask]*asked
	once    map[Ask]time.Time // approved when nobody waited
}

type answered struct {
	verdict Verdict
	why     string
}

type asked struct {
	done    chan struct{}
	waiters int
	answered
}

func newAsks() *asks { return &asks{waiting: map[Ask]*asked{}, once: map[Ask]time.Time{}} }

// ask waits until people have answered, or ctx is over; the question stays open
// then, for the next connection to the name.
func (s *session) ask(ctx context.Context, name string, port uint16) answered {
	key := Ask{s.spec.ID, name, port}
	one, known := s.asks.join(key, func() { go s.up.asked(key) })
	if one == nil {
		return known
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		s.asks.mu.Lock()
		defer s.asks.mu.Unlock()
		if one.waiters--; one.verdict == "" {
			return answered{Denied, "not granted, and the tool gave up before anybody answered: the question stays open until the turn ends"}
		}
	}
	return one.answered
}

// join is the question to wait for, or nil and its answer.
func (a *asks) join(key Ask, begin func()) (*asked, answered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, approved := a.once[key]
	delete(a.once, key)
	if approved && time.Since(at) < onceTime {
		return nil, answered{AllowOnce, ""}
	}
	one := a.waiting[key]
	if one == nil {
		if len(a.waiting) >= maxAsks {
			return nil, answered{Denied, "not granted, and too many questions wait for an answer"}
		}
		one = &asked{done: make(chan struct{})}
		a.waiting[key] = one
		begin()
	}
	one.waiters++
	return one, answered{}
}

// answer settles a question.
func (s *session) answer(key Ask, v Verdict, why string) {
	s.asks.mu.Lock()
	defer s.asks.mu.Unlock()
	one := s.asks.waiting[key]
	if one == nil {
		return
	}
	delete(s.asks.waiting, key)
	if v != Denied && one.waiters == 0 {
		s.asks.once[key] = time.Now()
	}
	one.answered = answered{v, why}
	close(one.done)
}
