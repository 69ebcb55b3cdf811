package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/text"
)

const (
	// maxLetters bounds what waits for one session: more than it can watch, and one for
	// each list.
	maxLetters = maxWatched + 16
	// maxLetterBytes bounds what that has in all: the URIs that a session watches, of a
	// usual length, and what a server says beside some of them.
	maxLetterBytes = 1 << 20
	// maxMinor is how many may wait where a minor one is still added.
	maxMinor = 64
)

// mailbox has what is announced to a session and not sent yet. Each session has its own,
// so that a client which takes nothing keeps no other one waiting, and nobody who
// announces something.
type mailbox struct {
	// overflows is called for the first letter that is thrown away since the box was
	// empty, without a lock; nil does nothing.
	overflows func()

	mu      sync.Mutex
	waiting []letter // the oldest first
	bytes   int
	sends   bool
	full    bool // since it was empty
}

// letter is one thing to be sent.
type letter struct {
	about string // of two about the same the later one takes the earlier one's place; empty is about something of its own
	bytes int    // what it keeps in memory
	send  func()
	minor bool // is left out where much waits
}

// put has one thing sent soon, and is quick. Where there is no room the oldest are
// thrown away: what comes now is nearer to how things are.
func (m *mailbox) put(l letter) {
	if m.add(l) && m.overflows != nil {
		m.overflows()
	}
}

func (m *mailbox) add(l letter) (overflows bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.full
	if m.full = m.full || l.bytes > maxLetterBytes; l.bytes > maxLetterBytes {
		return !before
	}
	if l.minor && len(m.waiting) >= maxMinor {
		m.full = true
		return !before
	}
	if i := slices.IndexFunc(m.waiting, func(other letter) bool { return other.about == l.about }); l.about != "" && i >= 0 {
		m.remove(i)
	}
	m.waiting = append(m.waiting, l)
	m.bytes += l.bytes
	for len(m.waiting) > maxLetters || m.bytes > maxLetterBytes {
		m.remove(0)
		m.full = true
	}
	if !m.sends && len(m.waiting) > 0 {
		m.sends = true
		go m.send()
	}
	return m.full && !before
}

// remove takes a letter out. m is locked.
func (m *mailbox) remove(i int) {
	m.bytes -= m.waiting[i].bytes
	m.waiting = slices.Delete(m.waiting, i, i+1)
}

// send ends when nothing waits; what a client does not take waits as long as its
// session.
func (m *mailbox) send() {
	for {
		m.mu.Lock()
		if len(m.waiting) == 0 {
			m.sends, m.full, m.waiting = false, false, nil
			m.mu.Unlock()
			return
		}
		next := m.waiting[0]
		m.remove(0)
		m.mu.Unlock()
		next.send()
	}
}

// byMail sends what is announced to all sessions to each by itself.
func (g *Gateway) byMail(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		one, ok := r.GetSession().(*mcpsdk.ServerSession)
		if !ok || !IsListChange(method) && method != resourceUpdated {
			return next(ctx, method, r)
		}
		about := method
		if method == resourceUpdated {
			if r = g.subscriptions.updateFor(one, r); r == nil {
				return nil, nil
			}
			about += " " + r.GetParams().(*mcpsdk.ResourceUpdatedNotificationParams).URI
		}
		raw, err := json.Marshal(r.GetParams())
		if err != nil {
			return nil, err
		}
		g.mailboxOf(one).put(letter{about: about, bytes: len(raw), send: func() { _, _ = next(context.WithoutCancel(ctx), method, r) }})
		return nil, nil
	}
}

func (g *Gateway) mailboxOf(one *mcpsdk.ServerSession) *mailbox {
	g.mu.Lock()
	defer g.mu.Unlock()
	box := g.mailboxes[one]
	if box == nil {
		g.host.Track(one)
		box = &mailbox{overflows: func() {
			g.host.Logger.Warn("a client does not take what is announced to it: the oldest of that are left out", "client", nameOf(one), "most", maxLetters, "mostBytes", maxLetterBytes)
		}}
		g.mailboxes[one] = box
	}
	return box
}

// maxClientBytes bounds what is shown of a client's name.
const maxClientBytes = 128

// nameOf is what a session's client calls itself.
func nameOf(one *mcpsdk.ServerSession) string {
	if p := one.InitializeParams(); p != nil && p.ClientInfo != nil {
		return text.Bytes(p.ClientInfo.Name, maxClientBytes)
	}
	return ""
}
