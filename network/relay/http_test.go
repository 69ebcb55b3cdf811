package relay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/network"
)

// largeAnswer is the size of the site's answer to /large.
const largeAnswer = 400 << 10

// site is a server of a.test that notes for which hosts requests have come.
type site struct {
	at netip.AddrPort

	mu    sync.Mutex
	hosts []string
}

func newSite(t testing.TB) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{at: addrOf(t, l)}
	server := &http.Server{Handler: s}
	go server.Serve(l)
	t.Cleanup(func() { _ = server.Close() })
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.hosts = append(s.hosts, r.Host)
	s.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/upgrade") {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+r.Header.Get("Upgrade")+"\r\n\r\n")
		_, _ = io.Copy(conn, rw)
		return
	}
	if r.URL.Path == "/large" {
		w.Header().Set("Content-Length", strconv.Itoa(largeAnswer))
		_, _ = io.WriteString(w, strings.Repeat("x", largeAnswer))
		return
	}
	n, _ := io.Copy(io.Discard, r.Body)
	fmt.Fprintf(w, "%s %s %q %d", r.Method, r.RequestURI, r.Header.Values("X-Forwarded-For"), n)
}

func (s *site) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.hosts...)
}

// speak has a tool say something on a connection to the site, and end; got is what
// it hears, and err how that ended.
func speak(t testing.TB, s *session, site *site, said string) (got string, err error) {
	t.Helper()
	c, tool := connected(t, s)
	over := make(chan struct{})
	go func() {
		defer close(over)
		var refused *policyRefusal
		failed := c.serveHTTP(target{name: "a.test", at: site.at, grant: s.spec.Grants[0]})
		if errors.As(failed, &refused) {
			s.ledger.refuse(refused.key, false)
		}
		if failed != nil {
			reset(c.in)
		}
		_ = c.in.Close()
	}()
	_, _ = io.WriteString(tool, said)
	_ = tool.CloseWrite()
	raw, err := io.ReadAll(tool)
	<-over
	return string(raw), err
}

func newSiteSession(t testing.TB) (*session, *site) {
	t.Helper()
	at := newSite(t)
	s, _ := newSession(t, deaf(), network.Limits{}, granted("a.test", at.at)...)
	s.leadTo("a.test", at.at.Addr())
	return s, at
}

func refusals(s *session) string { return fmt.Sprint(s.report().Refused) }

func TestRequestsOfOneConnection(t *testing.T) {
	s, at := newSiteSession(t)
	host := "Host: a.test\r\n"
	got, err := speak(t, s, at, "GET /1 HTTP/1.1\r\n"+host+"\r\nPOST /2?a=b;c HTTP/1.1\r\nX-Forwarded-For: 9.9.9.9\r\n"+host+"Content-Length: 3\r\n\r\nabc"+
		"PUT /3%2f HTTP/1.1\r\nHost: A.TEST:"+port(at.at)+"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET http://a.test/4 HTTP/1.1\r\n"+host+"Connection: close\r\n\r\n")
	for _, want := range []string{`GET /1 [] 0`, `POST /2?a=b;c ["9.9.9.9"] 3`, `PUT /3%2f [] 5`, `GET /4 [] 0`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q, %v", want, got, err)
		}
	}
	if r := s.report(); len(r.Refused) != 0 || len(r.Flows) != 1 || r.Flows[0].Error != "" {
		t.Errorf("%+v", r)
	}
}

// Whatever comes after a good request, nothing for another host arrives.
func TestRequestsForAnotherHost(t *testing.T) {
	good := "GET /good HTTP/1.1\r\nHost: a.test\r\n\r\n"
	for what, test := range map[string]struct{ said, why string }{
		"another host":                     {"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", "the HTTP host is b.test"},
		"another port":                     {"GET / HTTP/1.1\r\nHost: a.test:1\r\n\r\n", "the HTTP host is a.test:1"},
		"no host":                          {"GET / HTTP/1.0\r\n\r\n", "the HTTP host is missing"},
		"an absolute URL of another host":  {"GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "the HTTP host is b.test"},
		"another scheme":                   {"GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "another scheme"},
		"CONNECT":                          {"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", "CONNECT"},
		"h2c by upgrade":                   {"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: websocket, h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", "HTTP/2 without TLS"},
		"h2c at once":                      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""},
		"a name that Unicode makes so":     {"GET / HTTP/1.1\r\nHost: \u212a.test\r\n\r\n", ""},
		"an address":                       {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "the HTTP host is 127.0.0.1"},
		"a name with spaces":               {"GET / HTTP/1.1\r\nHost: a.test b.test\r\n\r\n", ""},
		"two hosts":                        {"GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n", ""},
		"a host in a folded line":          {"GET / HTTP/1.1\r\nHost: a.test\r\n b.test\r\n\r\n", ""},
		"two lengths":                      {"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\nGET /in HTTP/1.1\r\nHost: b.test\r\n\r\n", ""},
		"a length that is not a number":    {"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +0\r\n\r\nGET /in HTTP/1.1\r\nHost: b.test\r\n\r\n", ""},
		"an unknown transfer encoding":     {"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /in HTTP/1.1\r\nHost: b.test\r\n\r\n", ""},
		"something that is not HTTP":       {"SSH-2.0-x\r\n\r\n", ""},
		"a space before the colon of Host": {"GET / HTTP/1.1\r\nHost : b.test\r\n\r\n", ""},
	} {
		for _, before := range []string{"", good} {
			s, at := newSiteSession(t)
			got, err := speak(t, s, at, before+test.said)
			for _, host := range at.seen() {
				if host != "a.test" {
					t.Errorf("%s: a request for %q has arrived", what, host)
				}
			}
			if strings.Contains(got, "200 OK") && before == "" && !strings.Contains(test.said, "/in") {
				t.Errorf("%s: %q", what, got)
			}
			if !strings.Contains(refusals(s), test.why) {
				t.Errorf("%s: no %q in %s", what, test.why, refusals(s))
			}
			if test.why != "" && err == nil {
				t.Errorf("%s: no reset after %q", what, got)
			}
		}
	}
}

// After a 101 bytes are passed on as they are.
func TestAnUpgradedConnection(t *testing.T) {
	s, at := newSiteSession(t)
	c, tool := connected(t, s)
	over := make(chan error, 1)
	go func() { over <- c.serveHTTP(target{name: "a.test", at: at.at, grant: s.spec.Grants[0]}) }()
	_, _ = io.WriteString(tool, "GET /upgrade HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(tool)
	response, err := http.ReadResponse(r, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Upgrade") != "websocket" {
		t.Fatal(response, err)
	}
	free := []byte("GET / HTTP/1.1\r\nHost: b.test\r\n\r\n\x00\xff") // which is no request here
	for range 3 {
		if _, err := tool.Write(free); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(free))
		if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, free) {
			t.Fatalf("%q, %v", got, err)
		}
	}
	_ = tool.Close()
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection does not end")
	}
	if r := s.report(); len(r.Flows) != 1 || r.Flows[0].SentBytes < int64(3*len(free)) {
		t.Errorf("%+v", r)
	}
}

func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\nGET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx", "GET //b.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: Host\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	s, at := newSiteSession(f)
	f.Fuzz(func(t *testing.T, said []byte) {
		if bytes.Contains(bytes.ToLower(said), []byte("upgrade")) {
			return // after which bytes are free
		}
		_, _ = speak(t, s, at, string(said))
		at.mu.Lock()
		defer at.mu.Unlock()
		for _, host := range at.hosts {
			if name, _, _ := strings.Cut(lower(host), ":"); strings.TrimSuffix(name, ".") != "a.test" {
				t.Errorf("a request for %q has arrived", host)
			}
		}
		at.hosts = nil
	})
}

// A rate lets more through than one of its bursts, and slows it down.
func TestARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		received := gauge{session: &session{trafficCtx: t.Context(), bytes: newBytes(64 << 10)}}
		begun := time.Now()
		if err := received.count(bodyBytes); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 2*time.Second { // for what goes beyond 128 KiB
			t.Error(took)
		}
	})
}

// An answer larger than the rate arrives whole.
func TestAnAnswerThroughARate(t *testing.T) {
	at := newSite(t)
	s, _ := newSession(t, deaf(), network.Limits{Rate: 192 << 10}, granted("a.test", at.at)...)
	s.leadTo("a.test", at.at.Addr())
	got, err := speak(t, s, at, "GET /large HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
	if err != nil || !strings.HasSuffix(got, "\n"+strings.Repeat("x", largeAnswer)) {
		t.Errorf("%d bytes, %v: %+v", len(got), err, s.report())
	}
}
