package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// caller is who has sent a request, as it goes on record.
type caller struct {
	name     string
	identity string // tells who have the same name, but are not the same, apart
	browser  bool   // by a session's cookie
}

// guarded lets through what comes from a place that may ask at all.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		patient := newPatientWriter(w, s.config.Stall)
		// Of what is refused, too, net/http reads the rest of the body, and only
		// then does it write the answer.
		defer patient.extend(2 * s.config.Stall)
		if r.Body != http.NoBody {
			body := newPatientBody(r.Body, patient.control, s.config.Stall)
			r.Body = body
			defer body.linger()
		}
		defer s.recovered(patient, r)
		harden(patient.Header())
		if err := s.checkPlace(r); err != nil {
			fail(patient, r, err)
			return
		}
		next.ServeHTTP(patient, r)
	})
}

// recovered answers for a handler that panicked.
func (s *Server) recovered(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.config.Logger.Error("bug: a request made its handler panic", "method", r.Method, "path", printable(r.URL.Path), "panic", p)
	fail(w, r, refuse(codeInternal, "bug: the request could not be handled", "see the daemon's log"))
}

// harden tells browsers to do nothing clever with an answer.
func harden(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// checkPlace checks what a browser says of the page that a request is for. A
// page elsewhere must not reach the API, neither directly nor by a name that it
// has had point here (DNS rebinding).
func (s *Server) checkPlace(r *http.Request) error {
	if !s.ownHost(r) {
		return refuse(codeBadHost, "the host "+printable(r.Host)+" is not this daemon's", "use localhost and the daemon's port")
	}
	if !s.ownOrigin(r) {
		return refuse(codeBadOrigin, "the request comes from another web site", "use the daemon's own pages, or a client that is not a browser")
	}
	// As it was sent: what is encoded, such as the / of an id, is not part of the way.
	if sent := r.URL.EscapedPath(); path.Clean(sent) != sent && path.Clean(sent)+"/" != sent {
		return refuse(codeNotFound, "there is nothing at "+printable(r.URL.Path), "encode / in ids as %2F; see /api/openapi.json")
	}
	return nil
}

var loopbackNames = []string{"localhost", "127.0.0.1", "::1"}

func (s *Server) ownHost(r *http.Request) bool {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = strings.Trim(r.Host, "[]"), ""
	}
	if named(s.config.Hosts, host) {
		return true
	}
	if !named(loopbackNames, host) {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	if tcp, ok := local.(*net.TCPAddr); ok {
		return port == portOf(tcp)
	}
	return true // a unix socket has no port that could be another's
}

// named: names of hosts are the same in any case (RFC 9110, 4.2.3).
func named(names []string, host string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}

func portOf(a *net.TCPAddr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}

// ownOrigin trusts what no page can forge: Origin, and Sec-Fetch-Site. A link
// that somebody follows to the login is from elsewhere by nature.
func (s *Server) ownOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && !strings.EqualFold(origin, "http://"+r.Host) {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.Method == http.MethodGet && r.URL.Path == loginPath && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// authenticate finds out who asks.
func (s *Server) authenticate(r *http.Request, public bool) (caller, error) {
	if c := childrenOf(r.Context()); c != nil {
		return c.caller(), nil
	}
	if peer, ok := peerOf(r.Context()); ok {
		return s.byPeer(peer)
	}
	if public {
		return caller{name: "anybody"}, nil
	}
	if header := r.Header.Get("Authorization"); header != "" {
		return s.byToken(header)
	}
	if cookie, err := r.Cookie(cookieName); err == nil {
		return s.bySession(r, cookie.Value)
	}
	return caller{}, refuse(codeUnauthorized, "authentication required", "send the daemon's token: Authorization: Bearer TOKEN")
}

func (s *Server) byPeer(p peer) (caller, error) {
	if p.err != nil {
		return caller{}, refuse(codeForbidden, "the peer's user cannot be found out: "+printable(p.err.Error()), "connect by a unix socket of this machine")
	}
	if !s.config.AnyUser && !slices.Contains(s.config.UIDs, p.uid) {
		return caller{}, refuse(codeForbidden, "your user may not use this daemon", "ask its operator to allow it (socket: uids)")
	}
	return caller{name: "uid " + uitoa(p.uid), identity: "uid " + uitoa(p.uid)}, nil
}

func (s *Server) byToken(header string) (caller, error) {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return caller{}, refuse(codeUnauthorized, "the scheme of Authorization is not Bearer", "send the daemon's token: Authorization: Bearer TOKEN")
	}
	if s.config.Token == "" || !same(strings.TrimSpace(token), s.config.Token) {
		return caller{}, refuse(codeUnauthorized, "the token is not this daemon's", "read it from the daemon's token file")
	}
	return caller{name: "token", identity: "token " + fingerprint(s.config.Token)}, nil
}

// isScraper: the request has the metrics' token, by TCP.
func (s *Server) isScraper(r *http.Request) bool {
	if _, unix := peerOf(r.Context()); unix || s.config.MetricsToken == "" {
		return false
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && same(strings.TrimSpace(token), s.config.MetricsToken)
}

// same compares in constant time, lengths included.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// fingerprint tells secrets apart, and tells none of them.
func fingerprint(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:8])
}

// bySession takes a cookie, but to change anything only from a page that is
// known to be the daemon's own: browsers send cookies by themselves.
func (s *Server) bySession(r *http.Request, cookie string) (caller, error) {
	if !s.sessions.valid(cookie) {
		return caller{}, refuse(codeUnauthorized, "the session is over", "open a new link: toolhost console")
	}
	own := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") == "same-origin" // checked before
	if r.Method != http.MethodGet && !own {
		return caller{}, refuse(codeBadOrigin, "the browser does not say which page the request is from", "use a current browser")
	}
	return caller{name: "console", identity: "console " + fingerprint(cookie), browser: true}, nil
}

// elsewhere is all that is not a route.
func (s *Server) elsewhere(w http.ResponseWriter, r *http.Request) {
	if s.config.Pages == nil || strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/api" {
		fail(w, r, refuse(codeNotFound, "there is nothing at "+printable(r.URL.Path), "see /api/openapi.json"))
		return
	}
	who, err := s.authenticate(r, false)
	if err != nil {
		failPerson(w, r, err)
		return
	}
	_, stop, err := s.count(r, w, who)
	if err != nil {
		fail(w, r, err)
		return
	}
	defer stop()
	s.config.Pages.ServeHTTP(w, r.WithContext(withCaller(r.Context(), who)))
}

func parseQuery(raw string) (url.Values, error) { return url.ParseQuery(raw) }
