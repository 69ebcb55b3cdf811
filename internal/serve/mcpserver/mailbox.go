package mcpserver

import (
	"context"
	"encoding/json"
	"sync"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLetters bounds what waits for one session: more than it can watch, and one for
// each list.
const maxLetters = maxWatched + 16

// mailbox has what is announced to a session and not sent yet. Each session has its own,
// so that a client which takes nothing keeps no other one waiting, and nobody who
// announces something.
type mailbox struct {
	mu      sync.Mutex
	waiting map[string]func() // by what it says: the same waits once
	order   []string
	sends   bool
}

// put has one thing sent soon, and is quick.
func (m *mailbox) put(what string, send func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[what] != nil || len(m.order) == maxLetters {
		return
	}
	if m.waiting == nil {
		m.waiting = map[string]func(){}
	}
	m.waiting[what] = send
	m.order = append(m.order, what)
	if !m.sends {
		m.sends = true
		go m.send()
	}
}

// send ends when nothing waits; what a client does not take waits as long as its
// session.
func (m *mailbox) send() {
	for {
		m.mu.Lock()
		if len(m.order) == 0 {
			m.sends, m.order = false, nil
			m.mu.Unlock()
			return
		}
		next := m.waiting[m.order[0]]
		delete(m.waiting, m.order[0])
		m.order = m.order[1:]
		m.mu.Unlock()
		next()
	}
}

// byMail sends what is announced to all sessions to each by itself.
func (s *Server) byMail(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		one, ok := r.GetSession().(*mcpsdk.ServerSession)
		if !ok || !listChanges[method] && method != resourceUpdated {
			return next(ctx, method, r)
		}
		what, err := json.Marshal(r.GetParams())
		if err != nil {
			return nil, err
		}
		s.mailboxOf(one).put(method+string(what), func() { _, _ = next(context.WithoutCancel(ctx), method, r) })
		return nil, nil
	}
}

func (s *Server) mailboxOf(one *mcpsdk.ServerSession) *mailbox {
	found, known := s.mailboxes.Load(one)
	if !known {
		if found, known = s.mailboxes.LoadOrStore(one, &mailbox{}); !known {
			s.ends(one, func() { s.mailboxes.Delete(one) })
		}
	}
	return found.(*mailbox)
}
