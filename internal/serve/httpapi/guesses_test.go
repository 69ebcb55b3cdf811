package httpapi

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// Who guesses is not heard any more, whatever comes next from there; who has shown a
// right token goes on, and so does everybody elsewhere.
func TestGuessesAreBounded(t *testing.T) {
	w := newTeam(t)
	if status, _ := w.as("caller", "GET", "/api/whoami", ""); status != 200 {
		t.Fatal(status)
	}
	for range guessBurst {
		if status, said := w.overTCP("GET", "/api/tools", "", "Authorization", "Bearer wrong"); status != 401 {
			t.Fatalf("%d %s", status, said)
		}
	}
	for name, token := range map[string]string{"another guess": "wrong", "even a right one": w.tokens["other"]} {
		status, said := w.overTCP("GET", "/api/tools", "", "Authorization", "Bearer "+token)
		if status != 429 || !strings.Contains(said, codeThrottled) || !strings.Contains(said, "retryAfterMs") {
			t.Errorf("%s: %d %s", name, status, said)
		}
	}
	if status, said := w.overTCP("POST", loginPath, `{"link":"x"}`); status != 429 {
		t.Errorf("a link: %d %s", status, said)
	}
	if status, said := w.as("caller", "GET", "/api/whoami", ""); status != 200 {
		t.Errorf("who was right before: %d %s", status, said)
	}
	if status, _ := w.send("GET", "/api/tools", ""); status != 200 {
		t.Errorf("the socket: %d", status)
	}
}

func TestGuessersAreForgotten(t *testing.T) {
	now := time.Unix(0, 0)
	g := newGuesses(func() time.Time { return now })
	address := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}) }
	for range guessBurst {
		g.wrong(address(0))
	}
	if wait := g.wait(address(0), "x"); wait <= 0 || wait > guessPause {
		t.Errorf("the wait is %s", wait)
	}
	if g.wait(address(1), "x") != 0 {
		t.Error("another address waits, too")
	}
	if now = now.Add(guessPause); g.wait(address(0), "x") != 0 {
		t.Error("it waits for ever")
	}
	for n := range max(maxGuessers, maxProven) + 64 {
		g.wrong(address(n))
		g.right(address(n), "x")
	}
	if len(g.by) > maxGuessers || len(g.proven) > maxProven {
		t.Errorf("%d and %d are remembered", len(g.by), len(g.proven))
	}
	if of(netip.MustParseAddr("2001:db8::1")) != of(netip.MustParseAddr("2001:db8::2")) || of(address(1)) == of(address(2)) {
		t.Error("networks are not told apart as they should be")
	}
}

// Who asks is who a trusted proxy says, and nobody else.
func TestProxies(t *testing.T) {
	s := &authenticator{config: Config{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::1/128")}}}
	for _, test := range []struct{ peer, forwarded, want string }{
		{"10.0.0.7:1", "192.0.2.1", "192.0.2.1"},
		{"10.0.0.7:1", "203.0.113.9, 192.0.2.1", "192.0.2.1"},
		{"10.0.0.7:1", "203.0.113.9, 10.0.0.8", "203.0.113.9"},
		{"10.0.0.7:1", "junk", "10.0.0.7"},
		{"10.0.0.7:1", "", "10.0.0.7"},
		{"[fd00::1]:1", "192.0.2.1", "192.0.2.1"},
		{"192.0.2.7:1", "203.0.113.9", "192.0.2.7"},
		{"[::ffff:192.0.2.7]:1", "203.0.113.9", "192.0.2.7"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = test.peer
		if test.forwarded != "" {
			r.Header.Set("X-Forwarded-For", test.forwarded)
		}
		if got := s.from(r).String(); got != test.want {
			t.Errorf("%s for %q is %s, want %s", test.peer, test.forwarded, got, test.want)
		}
	}
}

// The configured URL is the daemon's, with browsers told to come back by TLS.
func TestPublicURL(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.PublicURL = "https://tools.example" })
	status, said := w.overTCP("GET", "/api/tools", "", "Authorization", bearer, "Host", "tools.example", "Origin", "https://tools.example", "Sec-Fetch-Site", "same-origin")
	if status != 200 {
		t.Errorf("%d %s", status, said)
	}
	for _, header := range [][]string{
		{"Host", "tools.example:1"}, {"Host", "tools.example.evil"}, {"Host", "tools.example", "Origin", "http://evil.example"}, {"Origin", "https://other.example"},
	} {
		if status, said := w.overTCP("GET", "/api/tools", "", append(header, "Authorization", bearer)...); status != 403 {
			t.Errorf("%q: %d %s", header, status, said)
		}
	}
	link, err := w.client.LoginLink(w.ctx())
	if err != nil || !strings.HasPrefix(link.URL, "https://tools.example/#link=") {
		t.Errorf("%+v %v", link, err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "tools.example"
	answer := httptest.NewRecorder()
	w.server.secure(answer.Header(), r)
	if answer.Header().Get("Strict-Transport-Security") == "" {
		t.Error("browsers may come back without TLS")
	}
}
