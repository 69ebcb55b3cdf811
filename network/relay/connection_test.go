package relay

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/toolhost/toolhost/network"
)

// A tool that resets its connection ends it, though the destination says nothing.
func TestAConnectionThatTheToolResets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, _ := newSession(t, deaf(), network.Limits{}, granted("a.test", addrOf(t, l))...)
	s.leadTo("a.test", addrOf(t, l).Addr())
	c, tool := connected(t, s)
	over := make(chan error, 1)
	go func() {
		out, err := c.dial(s.trafficCtx, target{name: "a.test", at: addrOf(t, l), grant: s.spec.Grants[0]}, false)
		if err == nil {
			err = c.copy(out, nil)
		}
		over <- err
	}()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if _, err := io.WriteString(far, "ready"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(tool, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	reset(tool)
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection lives on")
	}
}

// What a tool has sent arrives, though its connection is not accepted yet when the session
// begins to end.
func TestWhatWaitsToBeAcceptedArrives(t *testing.T) {
	for range 20 {
		plain := listenAt(t, "127.0.0.1:0")
		at := addrOf(t, plain)
		l := beside(t, at)
		far := addrOf(t, l)
		s, _ := newSessionAt(t, plain, deaf(), network.Limits{}, granted("a.test", far)...)
		s.standsFor(at.Addr(), "a.test")
		s.leadTo("a.test", far.Addr())
		tool, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tool, "sent"); err != nil {
			t.Fatal(err)
		}
		_ = tool.Close()
		s.close(true)
		_ = l.SetDeadline(time.Now().Add(20 * time.Second))
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); string(got) != "sent" {
			t.Fatalf("%q %v", got, err)
		}
		_ = conn.Close()
	}
}

// beside listens on a port of another address of the loopback.
func beside(t *testing.T, at netip.AddrPort) *net.TCPListener {
	t.Helper()
	var err error
	for n := byte(2); n < 100; n++ { // the port may be in use at some
		var l *net.TCPListener
		if l, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, n}), at.Port()))); err == nil {
			t.Cleanup(func() { _ = l.Close() })
			return l
		}
	}
	t.Fatal(err)
	return nil
}

// A destination that has ended its side and reads nothing does not keep a connection for
// which nothing moves.
func TestAConnectionThatNothingMovesOn(t *testing.T) {
	l := listenAt(t, "127.0.0.1:0")
	defer l.Close()
	s, _ := newSession(t, deaf(), network.Limits{Idle: 300 * time.Millisecond}, granted("a.test", addrOf(t, l))...)
	s.leadTo("a.test", addrOf(t, l).Addr())
	c, tool := connected(t, s)
	over := make(chan error, 1)
	go func() {
		err := c.connect(target{name: "a.test", at: addrOf(t, l), grant: s.spec.Grants[0]})
		reset(c.in)
		over <- err
	}()
	far, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	_ = far.CloseWrite()
	for err == nil { // until the connection ends, or the tool's own deadline
		_, err = tool.Write(make([]byte, pipeBytes))
	}
	endsIdle(t, s, over)
}

// A tool may connect ahead, and end without a word: nothing of that is refused.
func TestAConnectionWithoutAWord(t *testing.T) {
	for _, grant := range []network.Grant{{Host: "a.test", Ports: []uint16{443}}, {Host: "a.test", Ports: []uint16{80}}} {
		for what, end := range map[string]func(c *connection, tool *net.TCPConn){
			"the tool closes it": func(_ *connection, tool *net.TCPConn) { _ = tool.Close() },
			"the tool resets it": func(_ *connection, tool *net.TCPConn) { reset(tool) },
			"the call has ended": func(c *connection, _ *net.TCPConn) { c.abort("") },
		} {
			s, _ := newSession(t, deaf(), network.Limits{}, grant)
			c, tool := connected(t, s)
			end(c, tool)
			err := c.connect(target{name: "a.test", at: netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), grant.Ports[0]), grant: grant})
			if !errors.Is(err, errUnsaid) {
				t.Errorf("%v: %s: %v", grant, what, err)
			}
		}
	}
}
