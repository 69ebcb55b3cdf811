package relay

import (
	"context"
	"sync"
	"time"

	"github.com/toolhost/toolhost/network"
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
	last    int // ID
	waiting map[Ask]*asked
	once    map[Ask]time.Time // approved when nobody waited
}

type answered struct {
	verdict Verdict
	why     string
}

type asked struct {
	id      int
	over    chan struct{} // it was answered, or all connections have given up
	waiters int
	answered
}

func newAsks() *asks { return &asks{waiting: map[Ask]*asked{}, once: map[Ask]time.Time{}} }

// ask waits until people have answered, or ctx is over. The question stays open for
// the turn then, and the next connection to the name asks anew.
func (s *session) ask(ctx context.Context, name string, port uint16) answered {
	key := Ask{Session: s.spec.ID, Name: name, Port: port}
	one, known := s.asks.join(key, s.put)
	if one == nil {
		return known
	}
	select {
	case <-one.over:
		return one.answered
	case <-ctx.Done():
		return s.asks.leave(key, one)
	}
}

// put asks, and says when nobody waits any more.
func (s *session) put(key Ask, one *asked) {
	key.ID = one.id
	s.up.asked(key)
	<-one.over
	if one.verdict == "" {
		s.up.left(key)
	}
}

// join is the question to wait for, or nil and its answer.
func (a *asks) join(key Ask, put func(Ask, *asked)) (*asked, answered) {
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
		a.last++
		one = &asked{id: a.last, over: make(chan struct{})}
		a.waiting[key] = one
		go put(key, one)
	}
	one.waiters++
	return one, answered{}
}

// leave gives up waiting, unless there is an answer by now.
func (a *asks) leave(key Ask, one *asked) answered {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one.verdict != "" {
		return one.answered
	}
	if one.waiters--; one.waiters == 0 {
		delete(a.waiting, key)
		close(one.over)
	}
	return answered{Denied, "not granted, and the tool gave up before anybody answered: the question stays open until the turn ends"}
}

// answer settles a question. A yes for which nobody waits is kept for the next
// connection; a no counts for its own question alone.
func (s *session) answer(key Ask, v Verdict, why string) {
	id := key.ID
	key.ID = 0
	s.asks.mu.Lock()
	defer s.asks.mu.Unlock()
	one := s.asks.waiting[key]
	switch {
	case one != nil && (one.id == id || v != Denied):
		delete(s.asks.waiting, key)
		one.answered = answered{v, why}
		close(one.over)
	case v != Denied && len(s.asks.once) < network.MaxFound:
		s.asks.once[key] = time.Now()
	}
}
