package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/access/tokens"
)

// caller is who has sent a request.
type caller struct {
	access.Identity
	// holder is who a browser would act for that the caller lets in.
	holder tokens.Holder
	// token is the id of the token or session that was borne, and session says that
	// it is a browser's.
	token   string
	session bool
	expires time.Time
}

// on is the caller as the record has it.
func (c caller) on() string {
	if c.session {
		return c.Name + ", by the console"
	}
	return c.Name
}

// admit finds out who asks, and whether they may.
func (s *authenticator) admit(r *http.Request, need access.Need, public bool) (caller, error) {
	who, err := s.authenticate(r, public)
	if err == nil && !public {
		knowConnection(r.Context())
		if !who.Has(need) {
			err = refuse(codeForbidden, "this needs the role "+need.String(), "ask the daemon's operator for it")
		}
	}
	if err != nil {
		s.refused(r, who, err)
	}
	return who, err
}

// authenticate finds out who asks.
func (s *authenticator) authenticate(r *http.Request, public bool) (caller, error) {
	if c := childrenOf(r.Context()); c != nil {
		return c.caller(), nil
	}
	if peer, ok := peerOf(r.Context()); ok {
		return s.byPeer(peer)
	}
	if public {
		return caller{Identity: access.Identity{Name: "anybody"}}, nil
	}
	switch all := r.Header.Values("Authorization"); {
	case len(all) > 1: // a proxy may have looked at another one than this
		return caller{}, refuse(codeUnauthorized, "the header Authorization is given more than once", "send it once")
	case len(all) == 1 && all[0] != "":
		return s.byToken(r, all[0])
	}
	return caller{}, refuse(codeUnauthorized, "authentication required", "send a token of the daemon's: Authorization: Bearer TOKEN")
}

func (s *authenticator) byPeer(p peer) (caller, error) {
	if p.err != nil {
		return caller{}, refuse(codeForbidden, "the peer's user cannot be found out: "+printable(p.err.Error()), "connect by a unix socket of this machine")
	}
	who, ok := s.config.Book().OfUser(p.uid, p.groups)
	if !ok {
		return caller{}, refuse(codeForbidden, "your user may not use this daemon", "ask its operator to allow it (socket: uids, or access)")
	}
	return caller{Identity: who, holder: tokens.Holder{UID: &p.uid, Groups: p.groups}}, nil
}

// byToken lets in who bears a token. Wrong ones are counted for where they come
// from. After too many, only what cannot be guessed is looked at, so that nobody
// shuts out others who come from there, too.
func (s *authenticator) byToken(r *http.Request, header string) (caller, error) {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return caller{}, refuse(codeUnauthorized, "the scheme of Authorization is not Bearer", "send a token of the daemon's: Authorization: Bearer TOKEN")
	}
	token, from := strings.TrimSpace(token), s.from(r)
	wait := s.guesses.wait(from, token)
	who, ok, err := s.bearer(token, wait == 0)
	switch {
	case err != nil:
		s.config.Logger.Error("cannot check tokens", "error", err)
		return caller{}, refuse(codeUnready, "the daemon cannot read its tokens", "see its log")
	case !ok && wait > 0:
		return caller{}, tooManyGuesses(wait)
	case !ok:
		s.guesses.wrong(from)
		return caller{}, refuse(codeUnauthorized, "the token is not valid here", "it may have expired or been revoked: see toolhost token list, or for the console toolhost console")
	}
	s.guesses.right(from, token)
	return who, nil
}

func tooManyGuesses(wait time.Duration) error {
	return refuseFor(wait, codeThrottled, "too many wrong tokens came from your address", "wait, and send a right one")
}

// bearer is who bears a token. Those that operators have written into files are
// looked at only if all are: they could be guessed.
func (s *authenticator) bearer(token string, all bool) (who caller, ok bool, err error) {
	is := func(kept string) bool { return same(token, kept) && kept != "" && (all || generated(kept)) }
	full, metrics := is(s.config.Token), is(s.config.MetricsToken)
	switch {
	case full:
		return s.fileHolder(), true, nil
	case metrics:
		return caller{Identity: access.Identity{Name: "metrics-token", Roles: []access.Role{access.Metrics}}}, true, nil
	case s.config.Tokens == nil:
		return caller{}, false, nil
	}
	found, ok, err := s.config.Tokens.Find(token)
	if err != nil || !ok {
		return caller{}, false, err
	}
	if found.Session == nil {
		return s.tokenHolder(found), true, nil
	}
	who, ok = s.sessionHolder(*found.Session)
	who.token, who.session, who.expires = found.ID, true, found.Expires
	return who, ok, nil
}

// fileHolder bears the one token of the state folder, which does not end.
func (s *authenticator) fileHolder() caller {
	return caller{Identity: access.Identity{Name: "token", Roles: []access.Role{access.Admin}}, holder: tokens.Holder{FileHash: tokens.HashOf(s.config.Token)}}
}

func (s *authenticator) tokenHolder(t tokens.Token) caller {
	return caller{
		Identity: s.config.Book().OfToken(t.Name, t.Roles, t.Tools), holder: tokens.Holder{Token: t.ID}, token: t.ID, expires: t.Expires,
	}
}

// sessionHolder is who a session acts for, as they are now: with a token that is
// gone, or a user who may not connect any more, it is over.
func (s *authenticator) sessionHolder(h tokens.Holder) (who caller, ok bool) {
	switch {
	case h.FileHash != "":
		return s.fileHolder(), s.config.Token != "" && same(h.FileHash, tokens.HashOf(s.config.Token))
	case h.Token != "":
		t, ok := s.config.Tokens.ByID(h.Token)
		return s.tokenHolder(t), ok
	case h.UID != nil:
		i, ok := s.config.Book().OfUser(*h.UID, h.Groups)
		return caller{Identity: i, holder: h}, ok
	}
	return caller{}, false
}

// checkEvery is how often a stream is held to what let it in.
const checkEvery = 2 * time.Second

// still says whether what a client has authenticated by is valid, and lets it do what it
// did then.
func (s *authenticator) still(who caller) bool {
	if who.token != "" && !s.config.Tokens.Holds(who.token) {
		return false
	}
	if who.holder.UID == nil {
		return true
	}
	now, ok := s.config.Book().OfUser(*who.holder.UID, who.holder.Groups)
	lost := func(r access.Role) bool { return !slices.Contains(now.Roles, r) }
	return ok && !slices.ContainsFunc(who.Roles, lost)
}

// whileKnown is a context for as long as still holds: nobody goes on to read by a token
// that was revoked, or as a user who may not any more.
func (s *authenticator) whileKnown(ctx context.Context, who caller) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if who.token == "" && who.holder.UID == nil {
		return ctx, cancel
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Hour, func() {
		switch {
		case ctx.Err() != nil: // it is over
		case s.still(who):
			timer.Reset(checkEvery)
		default:
			cancel()
		}
	})
	timer.Reset(checkEvery) // not before it has its name
	return ctx, func() { cancel(); timer.Stop() }
}

// same compares in constant time, lengths included.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// whoami tells a client who it is.
func (s *Server) whoami(q *request) error {
	w := api.Whoami{Identity: q.who.Name, Roles: []string{}, Tools: "all", Session: q.who.session, ExpiresAt: q.who.expires}
	for _, role := range q.who.Roles {
		w.Roles = append(w.Roles, string(role))
	}
	if !q.who.UsesAll() {
		w.Tools = "some"
	}
	return q.answer(w)
}

// refused has what was not allowed put on record.
func (s *authenticator) refused(r *http.Request, who caller, err error) {
	if s.config.Refused != nil {
		s.config.Refused(Refusal{Who: who.on(), From: s.fromText(r), Method: r.Method, Path: printable(r.URL.Path), Err: err})
	}
}

func (s *authenticator) fromText(r *http.Request) string {
	if p, ok := peerOf(r.Context()); ok {
		return fmt.Sprintf("uid %d", p.uid)
	}
	return s.from(r).String()
}

// Refusal is a request that was not allowed.
type Refusal struct {
	// Who has asked, as far as they are known, From where; Method and Path say for
	// what, and Err why not.
	Who, From, Method, Path string
	Err                     error
}
