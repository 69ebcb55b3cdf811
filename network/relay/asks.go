package relay

import (
	"context"
	"sync"
)

// maxAsks bounds the questions of a session that wait for an answer.
const maxAsks = 8

// asks are a session's questions about names that are not granted. What was
// answered is the call's to remember.
type asks struct {
	mu      sync.Mutex
	last    int // ID
	waiting map[Ask]*asked
}

type answered struct {
	verdict Verdict
	why     string
}

type asked struct {
	id      int
	told    bool          // the host knows it
	over    chan struct{} // it was answered, or all connections have given up
	waiters map[waiter]struct{}
	answered
}

// waiter is a connection that waits for an answer.
type waiter interface {
	// gaveUp says whether its tool has closed it.
	gaveUp() bool
}

func newAsks() *asks { return &asks{waiting: map[Ask]*asked{}} }

// ask waits until people have answered, or ctx is over. The question stays open for
// the turn then, and the next connection to the name asks anew.
func (s *session) ask(ctx context.Context, w waiter, name string, port uint16) answered {
	key := Ask{Session: s.spec.ID, Name: name, Port: port}
	one := s.asks.join(key, w, s.put)
	if one == nil {
		return answered{Denied, "not granted, and too many questions wait for an answer"}
	}
	select {
	case <-one.over:
		return one.answered
	case <-ctx.Done():
		return s.asks.leave(key, w, one)
	}
}

// put asks, and says when nobody waits any more.
func (s *session) put(key Ask, one *asked) {
	key.ID = one.id
	s.host.asked(key)
	s.asks.mu.Lock()
	one.told = true
	s.asks.mu.Unlock()
	<-one.over
	if one.verdict == "" {
		s.host.left(key)
	}
}

// join is the question to wait for; nil if there are too many.
func (a *asks) join(key Ask, w waiter, put func(Ask, *asked)) *asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.waiting[key]
	if one == nil {
		if len(a.waiting) >= maxAsks {
			return nil
		}
		a.last++
		one = &asked{id: a.last, over: make(chan struct{}), waiters: map[waiter]struct{}{}}
		a.waiting[key] = one
		go put(key, one)
	}
	one.waiters[w] = struct{}{}
	return one
}

// leave gives up waiting, unless there is an answer by now.
func (a *asks) leave(key Ask, w waiter, one *asked) answered {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one.verdict != "" {
		return one.answered
	}
	if delete(one.waiters, w); len(one.waiters) == 0 {
		delete(a.waiting, key)
		close(one.over)
	}
	return answered{Denied, "not granted, and the tool gave up before anybody answered: the question stays open until the turn ends"}
}

// answer settles a question, and returns the ID of the one that has the answer: 0 if no
// connection waits any more, for which a yes would be spent on nothing. A yes is for any
// question about the name that the host knows of, a no for its own alone.
func (s *session) answer(key Ask, v Verdict, why string) (taken int) {
	id := key.ID
	key.ID = 0
	s.asks.mu.Lock()
	defer s.asks.mu.Unlock()
	one := s.asks.waiting[key]
	if one == nil {
		return 0
	}
	abandoned := v != Denied && one.abandoned()
	if one.id != id && (v == Denied || abandoned || !one.told) {
		return 0
	}
	delete(s.asks.waiting, key)
	defer close(one.over)
	if abandoned {
		one.answered = answered{Denied, "not granted, and the tool gave up before the answer came: a yes counts for its next connection"}
		return 0
	}
	one.answered = answered{v, why}
	return one.id
}

// abandoned says that no connection waits, though some may not have noticed yet.
func (one *asked) abandoned() bool {
	for w := range one.waiters {
		if !w.gaveUp() {
			return false
		}
	}
	return true
}
