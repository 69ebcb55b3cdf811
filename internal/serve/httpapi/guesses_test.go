package httpapi

import (
	"fmt"
	"hash/crc32"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/access/tokens"
)

// Who guesses is put off, and nobody else: every right token is let in from the same
// address, whether it was shown there before or not, and so is a right link.
func TestGuessesAreBounded(t *testing.T) {
	file, metrics := generate(), generate()
	w := newTeamOf(t, func(c *Config) { c.Token, c.MetricsToken = file, metrics })
	links := []string{w.link("watcher"), w.link("watcher")}
	exhaust(t, w.world)
	other := w.tokens["other"]
	id := other[:len(tokens.Prefix)+10]
	for name, token := range map[string]string{
		"another guess": "wrong", "a token that was never made": tokens.Prefix + "aaaaaaaaaa_AAAAAAAAAAAAAAAAAAAAAAAAAAdeadbeef",
		"one with the id of another": wellFormed(id + "_" + strings.Repeat("A", 26)), "one of the file's form": generate(),
	} {
		for range 2 {
			status, said := w.overTCP("GET", "/api/tools", "", "Authorization", "Bearer "+token)
			if status != 429 || !strings.Contains(said, codeThrottled) || !strings.Contains(said, "retryAfterMs") {
				t.Fatalf("%s: %d %s", name, status, said)
			}
		}
	}
	if status, said := w.overTCP("POST", loginPath, `{"link":"x"}`); status != 429 {
		t.Errorf("a link: %d %s", status, said)
	}
	for name := range w.tokens {
		if status, said := w.as(name, "GET", "/api/whoami", ""); (status == 200) == (name == "metrics") {
			t.Errorf("the right token of %s: %d %s", name, status, said)
		}
	}
	for path, token := range map[string]string{"/api/tools": file, "/metrics": metrics} {
		if status, said := w.overTCP("GET", path, "", "Authorization", "Bearer "+token); status == 429 || status == 401 {
			t.Errorf("the file's token at %s: %d %s", path, status, said)
		}
	}
	for i, link := range links {
		status, said := w.overTCP("POST", loginPath, `{"link":"`+strings.TrimPrefix(link, "/#link=")+`"}`)
		if status != 201 && status != 200 {
			t.Errorf("link %d: %d %s", i, status, said)
		}
	}
	if status, _ := w.send("GET", "/api/tools", ""); status != 200 {
		t.Errorf("the socket: %d", status)
	}
	if err := revoke(w, "other"); err != nil {
		t.Fatal(err)
	}
	if status, _ := w.as("other", "GET", "/api/whoami", ""); status != 401 {
		t.Errorf("a revoked token: %d", status)
	}
}

// What an operator has made up could be guessed: it is not looked at, but for who has
// shown it from there before.
func TestATokenThatCouldBeGuessed(t *testing.T) {
	for _, shown := range []bool{true, false} {
		w := newWorld(t, nil)
		want := 429
		if shown {
			w.overTCP("GET", "/api/tools", "", "Authorization", bearer)
			want = 200
		}
		exhaust(t, w)
		if status, said := w.overTCP("GET", "/api/tools", "", "Authorization", bearer); status != want {
			t.Errorf("shown before: %t: %d %s", shown, status, said)
		}
	}
}

// exhaust makes all guesses that an address has.
func exhaust(t *testing.T, w *world) {
	t.Helper()
	for range guessBurst {
		if status, said := w.overTCP("GET", "/api/tools", "", "Authorization", "Bearer wrong"); status != 401 {
			t.Fatalf("%d %s", status, said)
		}
	}
}

// wellFormed completes a token by its checksum.
func wellFormed(body string) string {
	return fmt.Sprintf("%s%08x", body, crc32.ChecksumIEEE([]byte(body)))
}

func revoke(w *team, name string) error {
	_, err := w.store.Revoke(name, "test")
	return err
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
