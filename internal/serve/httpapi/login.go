package httpapi

import (
	"context"
	"crypto/sha256"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access/tokens"
)

const (
	loginPath = "/api/login"

	linkLife    = 2 * time.Minute
	sessionLife = 12 * time.Hour
	maxLinks    = 16
)

// links let browsers in, each one once. They are kept by the hash of their secret, so
// that the time of a look-up reveals nothing about others.
type links struct {
	now func() time.Time

	mu   sync.Mutex
	open map[[32]byte]link
}

type link struct {
	of    tokens.Holder
	by    string
	until time.Time
}

func newLinks(now func() time.Time) *links { return &links{now: now, open: map[[32]byte]link{}} }

// add makes the secret of one; false if too many of the same holder's wait to be
// opened.
func (l *links) add(of tokens.Holder, by string) (secret string, until time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, own := l.now(), 0
	maps.DeleteFunc(l.open, func(_ [32]byte, one link) bool { return !now.Before(one.until) })
	for _, one := range l.open {
		if one.by == by {
			own++
		}
	}
	if own >= maxLinks {
		return "", time.Time{}, false
	}
	secret, until = generate(), now.Add(linkLife)
	l.open[sha256.Sum256([]byte(secret))] = link{of, by, until}
	return secret, until, true
}

// take opens a link, once.
func (l *links) take(secret string) (link, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hash := sha256.Sum256([]byte(secret))
	one, ok := l.open[hash]
	delete(l.open, hash)
	return one, ok && l.now().Before(one.until)
}

// loginLink makes a link for a client that is authenticated by more than a
// session: a session must not renew itself.
func (s *Server) loginLink(q *request) error {
	if q.who.session {
		return refuse(codeForbidden, "a browser's session cannot let others in", "run toolhost console")
	}
	if s.config.Tokens == nil {
		return refuse(codeUnready, "this daemon keeps no state, and so no sessions", "start it with a state folder")
	}
	secret, until, ok := s.links.add(q.who.holder, q.who.Name)
	if !ok {
		return refuse(codeBusy, "too many links are still unopened", "open one, or wait two minutes")
	}
	made := api.LoginLink{Path: "/#link=" + secret, ExpiresAt: until.UTC()}
	if base := s.base(); base != "" {
		made.URL = base + made.Path
	}
	return q.answer(made)
}

// base is where browsers find the daemon; empty if they don't.
func (s *Server) base() string {
	if s.public != nil {
		return originOf(s.public)
	}
	if address := s.address.Load(); address != nil {
		return *address
	}
	return ""
}

// listens notes the first TCP address at which browsers find the daemon: 0.0.0.0, where it
// listens on all addresses, is not one that they can open.
func (s *Server) listens(l net.Listener) context.Context {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		scheme := "http://"
		if s.config.TLS {
			scheme = "https://"
		}
		address := scheme + tcp.String()
		s.address.CompareAndSwap(nil, &address)
	}
	return context.Background()
}

// login turns a link into a session.
func (s *Server) login(q *request) error {
	var in api.Login
	if err := q.decode(&in); err != nil {
		return err
	}
	from := s.from(q.r)
	one, ok := s.links.take(in.Link)
	if !ok {
		if wait := s.guesses.wait(from, in.Link); wait > 0 {
			return tooManyGuesses(wait)
		}
		s.guesses.wrong(from)
		err := refuse(codeForbidden, "the link was opened before, or is too old", "make a new one: toolhost console")
		s.refused(q.r, q.who, err)
		return err
	}
	secret, expires, err := s.config.Tokens.Login(one.of, sessionLife, one.by)
	if err != nil {
		s.config.Logger.Error("no session can begin", "error", err)
		return refuse(codeUnready, "the session cannot be kept", "see the daemon's log")
	}
	s.note(one.by, "session.begin", s.fromText(q.r))
	return q.answer(api.Session{Token: secret, ExpiresAt: expires})
}

func (s *Server) logout(q *request) error {
	if !q.who.session {
		return refuse(codeInvalid, "there is no session of a browser to end", "revoke a token with toolhost token revoke")
	}
	if err := s.config.Tokens.Logout(q.who.token); err != nil {
		s.config.Logger.Error("a session cannot be ended", "error", err)
		return refuse(codeUnready, "the session cannot be ended", "see the daemon's log")
	}
	s.note(q.who.Name, "session.end", s.fromText(q.r))
	return q.answer(api.Done{OK: true})
}

// note puts something that was done on record.
func (s *authenticator) note(who, action, what string) {
	if s.config.Note != nil {
		s.config.Note(who, action, what)
	}
}
