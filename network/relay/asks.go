package relay

import (
	"context"
	"sync"
)

// maxAsks bounds the questions of a session that wait for an answer.
const maxAsks = 8

// asks are a session's questions about names that are not granted.
type asks struct {
	mu      sync.Mutex
	waiting map[Ask]*asked
	settled map[Ask]answered // for the turn
}

type answered struct {
	verdict Verdict
	why     string
}

type asked struct {
	done chan struct{}
	answered
}

func newAsks() *asks { return &asks{waiting: map[Ask]*asked{}, settled: map[Ask]answered{}} }

// ask waits until people have answered, or the session or the connection is over.
func (s *session) ask(ctx context.Context, name string, port uint16) answered {
	key := Ask{s.spec.ID, name, port}
	s.asks.mu.Lock()
	if before, ok := s.asks.settled[key]; ok {
		s.asks.mu.Unlock()
		return before
	}
	one := s.asks.waiting[key]
	if one == nil {
		if len(s.asks.waiting) >= maxAsks {
			s.asks.mu.Unlock()
			return answered{Denied, "too many questions wait for an answer"}
		}
		one = &asked{done: make(chan struct{})}
		s.asks.waiting[key] = one
		go s.up.asked(key)
	}
	s.asks.mu.Unlock()
	select {
	case <-one.done:
		return one.answered
	case <-ctx.Done():
		return answered{Denied, "the tool gave up while people were asked; the question stays open"}
	}
}

// answer settles a question. What was allowed once is asked again next time; the
// rest counts for the process.
func (s *session) answer(key Ask, v Verdict, why string) {
	s.asks.mu.Lock()
	defer s.asks.mu.Unlock()
	one := s.asks.waiting[key]
	delete(s.asks.waiting, key)
	if v != AllowOnce {
		s.asks.settled[key] = answered{v, why}
	}
	if one != nil {
		one.answered = answered{v, why}
		close(one.done)
	}
}
