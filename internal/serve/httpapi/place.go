package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
)

// checkPlace checks what a browser says of the page that a request is for. A
// page elsewhere must not reach the API, neither directly nor by a name that it
// has had point here (DNS rebinding).
func (s *authenticator) checkPlace(r *http.Request) error {
	if !s.ownHost(r) {
		return refuse(codeBadHost, "the host "+printable(r.Host)+" is not this daemon's", "use localhost and the daemon's port, or have its operator set publicUrl")
	}
	if !s.ownOrigin(r) {
		return refuse(codeBadOrigin, "the request comes from another web site", "use the daemon's own pages, or a client that is not a browser")
	}
	if r.RequestURI == "*" {
		return refuse(codeNotFound, "there is nothing at *", "see /api/openapi.json")
	}
	// As it was sent: what is encoded, such as the / of an id, is not part of the way.
	if sent := r.URL.EscapedPath(); path.Clean(sent) != sent && path.Clean(sent)+"/" != sent {
		return refuse(codeNotFound, "there is nothing at "+printable(r.URL.Path), "encode / in ids as %2F; see /api/openapi.json")
	}
	return nil
}

var loopbackNames = []string{"localhost", "127.0.0.1", "::1"}

func (s *authenticator) ownHost(r *http.Request) bool {
	if s.isPublic(r) {
		return true
	}
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = strings.Trim(r.Host, "[]"), ""
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	tcp, ok := local.(*net.TCPAddr)
	if !ok {
		return named(loopbackNames, host) // a unix socket has no port that could be another's
	}
	if port == "" {
		port = defaultPort(schemeOf(r))
	}
	return port == portOf(tcp) && (named(loopbackNames, host) || isAddress(host, tcp))
}

// isAddress says whether a host is the very address that was connected to: no name
// that points to it.
func isAddress(host string, local *net.TCPAddr) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap() == local.AddrPort().Addr().Unmap()
}

// named reports whether a host has one of the names, in any case (RFC 9110, 4.2.3).
func named(names []string, host string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}

func portOf(a *net.TCPAddr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}

// isPublic says whether a request is for the configured URL.
func (s *authenticator) isPublic(r *http.Request) bool {
	return s.public != nil && strings.EqualFold(placeOf(s.public.Scheme, r.Host), placeOf(s.public.Scheme, s.public.Host))
}

// ownOrigin trusts what no page can forge: Sec-Fetch-Site and Origin. The pages of
// the console are for everybody who follows a link to them.
func (s *authenticator) ownOrigin(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && s.isPage(r) {
		return true
	}
	unsafe := *r
	unsafe.Method = http.MethodPost // what is only read is private, too
	if s.crossOrigin.Check(&unsafe) != nil {
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" || strings.EqualFold(origin, schemeOf(r)+"://"+r.Host) || s.public != nil && strings.EqualFold(origin, originOf(s.public))
}

// isPage reports whether the request is for a page, which anybody may see.
func (s *authenticator) isPage(r *http.Request) bool {
	if r.Method != http.MethodGet || s.config.Pages == nil {
		return false
	}
	_, pattern := s.routed.Handler(r)
	return pattern == "/" && r.URL.Path != "/api" && !strings.HasPrefix(r.URL.Path, "/api/")
}

func schemeOf(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

func originOf(u *url.URL) string { return u.Scheme + "://" + placeOf(u.Scheme, u.Host) }

// placeOf is a host without the port that its scheme has anyway, which browsers leave out
// (RFC 9110, 4.2.3).
func placeOf(scheme, host string) string { return strings.TrimSuffix(host, ":"+defaultPort(scheme)) }

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// secure has browsers come back by TLS alone, where the configured URL is one of
// TLS: of localhost that would be said for every port.
func (s *authenticator) secure(h http.Header, r *http.Request) {
	if s.isPublic(r) && s.public.Scheme == "https" {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// from is the address that a request comes from: what a trusted proxy says, else the
// other end of the connection. What anybody else says of that counts for nothing.
func (s *authenticator) from(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	address := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for len(hops) > 0 && s.isProxy(address) {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1]))
		if err != nil {
			break
		}
		address, hops = hop.Unmap(), hops[:len(hops)-1]
	}
	return address
}

func (s *authenticator) isProxy(a netip.Addr) bool {
	return slices.ContainsFunc(s.config.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}
