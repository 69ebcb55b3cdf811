package relay

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/network"
)

// requestsToOneThatCloses sends so many requests on one connection to a destination that
// ends its own after each answer, and gives how many it got and how many were answered.
func requestsToOneThatCloses(t *testing.T, n int, limits network.Limits) (s *session, c *connection, got, answered int) {
	t.Helper()
	var come atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { come.Add(1) }))
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	t.Cleanup(server.Close)
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	s, _ = newSession(t, deaf(), limits, granted("a.test", at)...)
	s.leadTo("a.test", at.Addr())
	c, tool := connected(t, s)
	if !s.admit(c) {
		t.Fatal("the connection is not taken in")
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = c.serveHTTP(target{name: "a.test", at: at, grant: s.spec.Grants[0]})
	}()
	_, _ = io.WriteString(tool, strings.Repeat("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", n))
	for r := bufio.NewReader(tool); answered < n; answered++ {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			break
		}
		_ = response.Body.Close()
	}
	_ = tool.Close()
	<-over
	return s, c, int(come.Load()), answered
}

// A connection that makes many to its destination keeps none that is over.
func TestConnectionsThatOneMakes(t *testing.T) {
	const n = 50
	s, c, got, answered := requestsToOneThatCloses(t, n, network.Limits{})
	if got != n || answered != n || s.total.Load() != n {
		t.Errorf("%d of %d requests are answered, %d connections count", answered, got, s.total.Load())
	}
	if kept := len(c.outers()); kept > n/2 { // the last ones, that may still be ending
		t.Errorf("%d connections are kept", kept)
	}
}

// Each that it makes counts for the limit of all.
func TestConnectionsThatOneMakesBeyondTheLimit(t *testing.T) {
	const most = 10
	s, _, got, answered := requestsToOneThatCloses(t, 50, network.Limits{TotalConnections: most})
	r := s.report()
	if got != most || answered > most || r.Limit != "connectionsTotal" {
		t.Errorf("limit %q: %d requests arrived, %d are answered", r.Limit, got, answered)
	}
	if len(r.Refused) != 1 || r.Refused[0].Name != "" && r.Refused[0].Name != "a.test" || r.Refused[0].Why != errLimit.Error() {
		t.Errorf("%+v", r.Refused)
	}
}
