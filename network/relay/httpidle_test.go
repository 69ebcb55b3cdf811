package relay

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/network"
)

// HTTP on which nothing moves ends, whichever side waits for the other.
func TestHTTPThatNothingMovesOn(t *testing.T) {
	const upgrade = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	for name, test := range map[string]struct {
		said       string
		tool, dest func(*net.TCPConn)
	}{
		"a destination that has ended its side reads nothing": {upgrade, pourInto, func(far *net.TCPConn) { _, _ = io.WriteString(far, switched); _ = far.CloseWrite() }},
		"a destination that says nothing more reads nothing":  {upgrade, pourInto, func(far *net.TCPConn) { _, _ = io.WriteString(far, switched) }},
		"both say nothing more":                               {upgrade, func(*net.TCPConn) {}, func(far *net.TCPConn) { _, _ = io.WriteString(far, switched) }},
		"only the destination has ended its side":             {upgrade, func(*net.TCPConn) {}, func(far *net.TCPConn) { _, _ = io.WriteString(far, switched); _ = far.CloseWrite() }},
		"a tool reads nothing of what follows a 101":          {upgrade, func(*net.TCPConn) {}, func(far *net.TCPConn) { _, _ = io.WriteString(far, switched); pourInto(far) }},
		"a tool reads nothing of an answer":                   {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", func(*net.TCPConn) {}, func(far *net.TCPConn) { _, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\n\r\n"); pourInto(far) }},
		"a destination does not answer":                       {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", func(*net.TCPConn) {}, func(*net.TCPConn) {}},
	} {
		t.Run(name, func(t *testing.T) {
			l := listenAt(t, "127.0.0.1:0")
			defer l.Close()
			s, _ := newSession(t, deaf(), network.Limits{Idle: 300 * time.Millisecond}, granted("a.test", addrOf(t, l))...)
			s.leadTo("a.test", addrOf(t, l).Addr())
			c, tool := connected(t, s)
			over := make(chan error, 1)
			go func() { over <- c.serveHTTP(target{name: "a.test", at: addrOf(t, l), grant: s.spec.Grants[0]}) }()
			_, _ = io.WriteString(tool, test.said)
			far, err := l.AcceptTCP()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			_ = far.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := http.ReadRequest(bufio.NewReader(far)); err != nil {
				t.Fatal(err)
			}
			go test.dest(far)
			go test.tool(tool)
			endsIdle(t, s, over)
		})
	}
}

// endsIdle waits until a connection ends for the idle limit, which its flow says.
func endsIdle(t *testing.T, s *session, over <-chan error) {
	t.Helper()
	select {
	case err := <-over:
		if !errors.Is(err, errIdle) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the connection lives on")
	}
	if r := s.report(); len(r.Flows) != 1 || r.Flows[0].Error != errIdle.Error() {
		t.Errorf("%+v", r.Flows)
	}
}

// pourInto writes until that fails.
func pourInto(conn *net.TCPConn) {
	for err := error(nil); err == nil; {
		_, err = conn.Write(make([]byte, pipeBytes))
	}
}

// Every byte that a side sends or takes counts as a movement, and nothing else does.
func TestWhatMoves(t *testing.T) {
	s, _ := newSession(t, deaf(), network.Limits{})
	c, tool := connected(t, s)
	sides, far := connected(t, s)
	out, err := newOuter(sides.in, flowKey{name: "a.test"}, time.Now(), s.ledger)
	if err != nil {
		t.Fatal(err)
	}
	c.out = []*outer{out}
	h := &httpRelay{connection: c}
	before := h.moved()
	for what, conn := range map[string]net.Conn{"the tool sends": tool, "the tool takes": c.in, "the destination sends": far, "the destination takes": out} {
		if _, err := io.WriteString(conn, "xy"); err != nil {
			t.Fatal(err)
		}
		before += 2
		wait.Until(t, what, func() bool { return h.moved() == before })
	}
}
