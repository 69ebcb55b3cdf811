package relay

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/network"
)

// shortTime is how long connections may take to begin where a test waits for that.
const shortTime = 50 * time.Millisecond

// whyRefused is what a connection was refused for; empty for another error, or none.
func whyRefused(err error) string {
	if refused, ok := errors.AsType[*policyRefusal](err); ok {
		return refused.key.why
	}
	return ""
}

// A grant with tls demands a ClientHello for its name on any port: what begins otherwise,
// or waits for a server that speaks first, does not reach it.
func TestTLSOnAnotherPort(t *testing.T) {
	l := listenAt(t, "127.0.0.1:0")
	defer l.Close()
	grants := granted("a.test", addrOf(t, l))
	grants[0].TLS = true
	for what, test := range map[string]struct {
		said []byte
		why  string
	}{
		"for another name":  {helloFor(t, "b.test"), "the TLS server name is b.test"},
		"without a name":    {helloFor(t, ""), "the TLS server name is missing"},
		"another protocol":  {[]byte("SSH-2.0-x\r\n"), errHello.Error()},
		"the server begins": {nil, errSilent.Error()},
	} {
		s, _ := newSession(t, deaf(), network.Limits{}, grants...)
		s.leadTo("a.test", addrOf(t, l).Addr())
		s.inspectTimeout = shortTime
		c, tool := connected(t, s)
		if _, err := tool.Write(test.said); err != nil {
			t.Fatal(err)
		}
		err := c.connect(target{name: "a.test", at: addrOf(t, l), grant: grants[0]})
		if whyRefused(err) != test.why || len(s.report().Flows) != 0 {
			t.Errorf("%s: %v, %+v", what, err, s.report().Flows)
		}
	}
	s, _ := newSession(t, deaf(), network.Limits{}, grants...)
	s.leadTo("a.test", addrOf(t, l).Addr())
	c, tool := connected(t, s)
	over := make(chan error, 1)
	go func() { over <- c.connect(target{name: "a.test", at: addrOf(t, l), grant: grants[0]}) }()
	hello := helloFor(t, "a.test")
	_, _ = tool.Write(hello)
	_ = tool.CloseWrite()
	if got := accepted(t, l); !bytes.Equal(got, hello) {
		t.Errorf("%d bytes of %d have arrived", len(got), len(hello))
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// accepted is all that comes over the next connection.
func accepted(t *testing.T, l *net.TCPListener) []byte {
	t.Helper()
	_ = l.SetDeadline(time.Now().Add(20 * time.Second))
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	return got
}

// On port 80 a connection without a request, or with a part of one, ends.
func TestARequestThatDoesNotCome(t *testing.T) {
	for what, said := range map[string]string{
		"nothing": "", "half a line": "GET / HT", "half a header": "GET / HTTP/1.1\r\nHost: a.test\r\nX: ",
	} {
		s, at := newSiteSession(t)
		s.inspectTimeout = shortTime
		c, tool := connected(t, s)
		if _, err := io.WriteString(tool, said); err != nil {
			t.Fatal(err)
		}
		err := c.serveHTTP(target{name: "a.test", at: at.at, grant: s.spec.Grants[0]})
		if why := whyRefused(err); why != "it did not begin with an HTTP request in time" || len(at.seen()) != 0 {
			t.Errorf("%s: %v, %q", what, err, at.seen())
		}
	}
}

// The connection beyond the limit is reset, and the others go on.
func TestTheConnectionBeyondTheLimit(t *testing.T) {
	const most = 64 // by default
	plain := listenAt(t, "127.0.0.1:0")
	at := addrOf(t, plain)
	l := beside(t, at)
	go lab.Each(l, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	s, _ := newSessionAt(t, plain, deaf(), network.Limits{}, granted("a.test", addrOf(t, l))...)
	s.standsFor(at.Addr(), "a.test")
	s.leadTo("a.test", addrOf(t, l).Addr())
	var tools []net.Conn
	for n := range most + 1 {
		tool, err := net.Dial("tcp", at.String())
		if err == nil {
			defer tool.Close()
			_ = tool.SetDeadline(time.Now().Add(20 * time.Second))
			err = echoed(tool)
		}
		if (err == nil) != (n < most) {
			t.Fatalf("connection %d: %v", n, err)
		}
		if err == nil {
			tools = append(tools, tool)
		}
	}
	for i, tool := range tools {
		if err := echoed(tool); err != nil {
			t.Errorf("connection %d after the refusal: %v", i, err)
		}
	}
	r := s.report()
	if len(r.Refused) != 1 || r.Refused[0].Name != "a.test" || r.Refused[0].Why != "more than 64 connections at once" || r.Refused[0].Count != 1 {
		t.Errorf("%+v", r.Refused)
	}
	if len(r.Flows) != 1 || r.Flows[0].Connections != most {
		t.Errorf("%+v", r.Flows)
	}
}

func echoed(conn net.Conn) error {
	if _, err := io.WriteString(conn, "x"); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

// The last address that a name leads to is judged at each connection, though the one
// before led to another.
func TestANameThatMovesMeanwhile(t *testing.T) {
	l := listenAt(t, "127.0.0.1:0")
	defer l.Close()
	s, _ := newSession(t, deaf(), network.Limits{}, granted("a.test", addrOf(t, l))...)
	for _, test := range []struct{ leads, why string }{{"127.0.0.1", ""}, {"127.0.0.2", "loopback"}, {"127.0.0.1", ""}} {
		to := addrOf(t, l)
		s.leadTo("a.test", netip.MustParseAddr(test.leads))
		c, _ := connected(t, s)
		_, err := c.dial(s.trafficCtx, target{name: "a.test", at: to, grant: s.spec.Grants[0]}, false)
		if why := whyRefused(err); !strings.Contains(why, test.why) || (err == nil) != (test.why == "") {
			t.Errorf("%s: %v", test.leads, err)
		}
	}
}
