package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Browsers leave out the port that a scheme has anyway.
func TestDefaultPorts(t *testing.T) {
	s := &authenticator{}
	for _, test := range []struct {
		host string
		port int
		tls  bool
		own  bool
	}{
		{"10.0.0.5", 443, true, true},
		{"10.0.0.5:443", 443, true, true},
		{"10.0.0.5", 80, false, true},
		{"localhost", 443, true, true},
		{"10.0.0.5", 443, false, false},
		{"10.0.0.5", 80, true, false},
		{"10.0.0.5", 7070, true, false},
		{"other.example", 443, true, false},
	} {
		local := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: test.port}
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, local), "GET", "/", nil)
		r.Host = test.host
		if test.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if s.ownHost(r) != test.own {
			t.Errorf("%s at port %d, TLS %t: own is %t", test.host, test.port, test.tls, !test.own)
		}
	}
}

// A public URL may name the port that its scheme has anyway.
func TestPublicURLWithItsDefaultPort(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.PublicURL = "https://tools.example:443" })
	for _, host := range []string{"tools.example", "tools.example:443"} {
		status, said := w.overTCP("GET", "/api/tools", "", "Authorization", bearer, "Host", host, "Origin", "https://tools.example", "Sec-Fetch-Site", "same-origin")
		if status != 200 {
			t.Errorf("%s: %d %s", host, status, said)
		}
	}
	if status, _ := w.overTCP("GET", "/api/tools", "", "Authorization", bearer, "Host", "tools.example:80"); status != 403 {
		t.Errorf("another port: %d", status)
	}
	link, err := w.client.LoginLink(w.ctx())
	if err != nil || !strings.HasPrefix(link.URL, "https://tools.example/#link=") {
		t.Errorf("%+v %v", link, err)
	}
}

// listening is a listener of an address, and nothing else.
type listening struct {
	net.Listener
	at net.TCPAddr
}

func (l listening) Addr() net.Addr { return &l.at }

// No link is made for an address that no browser can open.
func TestNoLinkForAllAddresses(t *testing.T) {
	s := &Server{}
	for _, all := range []net.IP{net.IPv4zero, net.IPv6unspecified} {
		if s.listens(listening{at: net.TCPAddr{IP: all, Port: 7070}}); s.base() != "" {
			t.Errorf("links of %s begin with %s", all, s.base())
		}
	}
	if s.listens(listening{at: net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7070}}); s.base() != "http://127.0.0.1:7070" {
		t.Errorf("links begin with %q", s.base())
	}
}
