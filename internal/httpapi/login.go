package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
)

const (
	loginPath  = "/api/login"
	cookieName = "toolhost_session"

	linkLife    = 2 * time.Minute
	sessionLife = 12 * time.Hour
	maxLinks    = 16
	maxEnded    = 256
)

// sessions let browsers in. Links are kept by the hash of their secret, so
// that the time of a look-up reveals nothing about others. The cookie that a
// link is exchanged for is sealed and not kept, so that a console goes on
// with the next daemon that has the same token.
type sessions struct {
	now func() time.Time

	mu    sync.Mutex
	key   [32]byte
	links map[[32]byte]time.Time // when it is over
	ended map[[32]byte]time.Time // sessions logged out of, by the hash of their cookie
}

// newSessions derives the sealing key from the token, or from random bytes
// without one.
func newSessions(token string, now func() time.Time) *sessions {
	if token == "" {
		token = rand.Text() + rand.Text()
	}
	s := &sessions{now: now, links: map[[32]byte]time.Time{}, ended: map[[32]byte]time.Time{}}
	s.key = [32]byte(seal([]byte(token), "sessions of browsers"))
	return s
}

func seal(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func forget(old map[[32]byte]time.Time, now time.Time) {
	maps.DeleteFunc(old, func(_ [32]byte, until time.Time) bool { return !now.Before(until) })
}

// link makes the secret of one; false if too many wait to be opened.
func (s *sessions) link() (secret string, until time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	forget(s.links, now)
	if len(s.links) >= maxLinks {
		return "", time.Time{}, false
	}
	secret, until = rand.Text()+rand.Text(), now.Add(linkLife)
	s.links[sha256.Sum256([]byte(secret))] = until
	return secret, until, true
}

// open takes a link, once, for the cookie of a session.
func (s *sessions) open(secret string) (cookie string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, hash := s.now(), sha256.Sum256([]byte(secret))
	until, ok := s.links[hash]
	delete(s.links, hash)
	if !ok || !now.Before(until) {
		return "", false
	}
	cookie = strconv.FormatInt(now.Add(sessionLife).Unix(), 10) + "." + rand.Text()
	return cookie + "." + hex.EncodeToString(seal(s.key[:], cookie)), true
}

// until says when the session of a cookie is over; false if we did not make it.
func (s *sessions) until(cookie string) (time.Time, bool) {
	at := strings.LastIndexByte(cookie, '.')
	if at < 0 || !same(cookie[at+1:], hex.EncodeToString(seal(s.key[:], cookie[:at]))) {
		return time.Time{}, false
	}
	unix, _, _ := strings.Cut(cookie, ".")
	seconds, err := strconv.ParseInt(unix, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

func (s *sessions) valid(cookie string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.until(cookie)
	_, ended := s.ended[sha256.Sum256([]byte(cookie))]
	return ok && !ended && s.now().Before(until)
}

// end logs out. Should too many have done so to be remembered, all are out.
func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.until(cookie)
	if !ok {
		return
	}
	forget(s.ended, s.now())
	if len(s.ended) >= maxEnded {
		s.key = sha256.Sum256([]byte(rand.Text() + rand.Text()))
		clear(s.ended)
		return
	}
	s.ended[sha256.Sum256([]byte(cookie))] = until
}

// loginLink makes a link for a client that is authenticated by more than a
// session: a session must not renew itself.
func (s *Server) loginLink(q *request) error {
	if q.who.browser {
		return refuse(codeForbidden, "a browser's session cannot let others in", "run toolhost console")
	}
	secret, until, ok := s.sessions.link()
	if !ok {
		return refuse(codeBusy, "too many links have not been opened yet", "open one, or wait two minutes")
	}
	link := api.LoginLink{Path: loginPath + "?link=" + secret, ExpiresAt: until.UTC()}
	if address := s.address.Load(); address != nil {
		link.URL = "http://" + *address + link.Path
	}
	return q.answer(link)
}

// listens notes the first TCP address at which browsers find the daemon.
func (s *Server) listens(l net.Listener) context.Context {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		address := tcp.String()
		s.address.CompareAndSwap(nil, &address)
	}
	return context.Background()
}

// login turns a link into a session.
func (s *Server) login(q *request) error {
	cookie, ok := s.sessions.open(q.r.URL.Query().Get("link"))
	if !ok {
		failPerson(q.w, q.r, refuse(codeForbidden, "the link was opened before, or is too old", "make a new one: toolhost console"))
		return nil
	}
	http.SetCookie(q.w, &http.Cookie{
		Name: cookieName, Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int(sessionLife / time.Second),
	})
	q.w.Header().Set("Location", "/")
	respond(q.w, q.r, http.StatusSeeOther, struct{}{})
	return nil
}

func (s *Server) logout(q *request) error {
	if cookie, err := q.r.Cookie(cookieName); err == nil {
		s.sessions.end(cookie.Value)
	}
	http.SetCookie(q.w, &http.Cookie{Name: cookieName, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1})
	return q.answer(api.Done{OK: true})
}
