package turn

import (
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/budget"
)

// maxSessions bounds those that are remembered: more than can have active turns.
const maxSessions = 2 * maxActive

// session is what the turns of one SessionID have done together, which is what
// session_status tells. It is nil for turns without one; its methods take that.
type session struct {
	mu       sync.Mutex
	budget   budget.Turn // counts and clocks; no bound of it matters
	timedOut []string

	// Below is the Manager's.
	turns int       // active ones
	left  time.Time // when the last one ended
}

// join finds the session of a turn that begins, or makes it in the place of the
// one that has been idle for longest. The Manager is locked.
func (m *Manager) join(owner, id string, now time.Time) *session {
	if id == "" {
		return nil
	}
	id = owner + "\x00" + id
	s := m.sessions[id]
	if s == nil {
		if len(m.sessions) >= maxSessions {
			m.forgetSession()
		}
		s = &session{budget: budget.NewTurn(now, budget.TurnSpec{})}
		m.sessions[id] = s
	}
	s.turns++
	return s
}

func (m *Manager) forgetSession() {
	oldest := ""
	for id, s := range m.sessions {
		if s.turns == 0 && (oldest == "" || s.left.Before(m.sessions[oldest].left)) {
			oldest = id
		}
	}
	delete(m.sessions, oldest)
}

// leave notes that a turn of a session is over. The Manager is locked.
func (s *session) leave(now time.Time) {
	if s != nil {
		s.turns--
		s.left = now
	}
}

// count has f count for the session, too.
func (s *session) count(f func(*budget.Turn)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.budget)
}

func (s *session) noteTimeout(tool string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.timedOut, tool) {
		s.timedOut = append(s.timedOut, tool)
	}
}

// tell puts the session's figures in the place of the turn's.
func (s *session) tell(status *Status, now time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	status.CallCount, status.TimedOutTools = s.budget.Calls(), ShortNames(s.timedOut)
	status.ToolTimeMs, status.HumanWaitMs = s.budget.ToolTime(now).Milliseconds(), s.budget.HumanWait(now).Milliseconds()
}

// turnBudget is a turn's own budget. What it counts, its session counts, too.
type turnBudget struct {
	budget.Turn
	session *session
}

func (b *turnBudget) Count() budget.Refusal {
	b.session.count(func(s *budget.Turn) { s.Count() })
	return b.Turn.Count()
}

func (b *turnBudget) Reserve(now time.Time, want time.Duration) (granted time.Duration, refused budget.Refusal) {
	if granted, refused = b.Turn.Reserve(now, want); refused == "" {
		b.session.count(func(s *budget.Turn) { s.Again(now) })
	}
	return granted, refused
}

func (b *turnBudget) Again(now time.Time) {
	b.both(func(t *budget.Turn) { t.Again(now) })
}

func (b *turnBudget) Release(now time.Time) {
	b.both(func(t *budget.Turn) { t.Release(now) })
}

func (b *turnBudget) Waiting(now time.Time) {
	b.both(func(t *budget.Turn) { t.Waiting(now) })
}

func (b *turnBudget) Resumed(now time.Time) {
	b.both(func(t *budget.Turn) { t.Resumed(now) })
}

func (b *turnBudget) both(count func(*budget.Turn)) {
	b.session.count(count)
	count(&b.Turn)
}
