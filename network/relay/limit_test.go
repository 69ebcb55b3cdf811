package relay

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/network"
)

// limitedSession has a destination that keeps count of the bytes that come to it, and
// where tools connect to it.
func limitedSession(t *testing.T, limits network.Limits) (s *session, at string, come *atomic.Int64) {
	t.Helper()
	plain := listenAt(t, "127.0.0.1:0")
	tools := addrOf(t, plain)
	l := beside(t, tools)
	come = new(atomic.Int64)
	go lab.Each(l, func(conn net.Conn) {
		buf := make([]byte, 1)
		for n, err := conn.Read(buf); err == nil; n, err = conn.Read(buf) {
			come.Add(int64(n))
			_, _ = conn.Write(buf)
		}
	})
	s, _ = newSessionAt(t, plain, deaf(), limits, granted("a.test", addrOf(t, l))...)
	s.standsFor(tools.Addr(), "a.test")
	s.leadTo("a.test", addrOf(t, l).Addr())
	return s, tools.String(), come
}

func dialled(t *testing.T, at string) net.Conn {
	t.Helper()
	tool, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tool.Close() })
	_ = tool.SetDeadline(time.Now().Add(20 * time.Second))
	return tool
}

// wantNothingMore checks that a session passes nothing on and says why.
func wantNothingMore(t *testing.T, s *session, at, limit string, tools ...net.Conn) {
	t.Helper()
	for _, tool := range tools {
		if _, err := io.Copy(io.Discard, tool); err == nil {
			t.Error("a connection from before the limit ended without a reset")
		}
	}
	if tool, err := net.Dial("tcp", at); err == nil {
		_ = tool.SetDeadline(time.Now().Add(20 * time.Second))
		if err := echoed(tool); err == nil {
			t.Error("a connection after the limit reaches its destination")
		}
		_ = tool.Close()
	}
	wait.Until(t, "no connection is left", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.conns) == 0
	})
	r := s.report()
	if r.Limit != limit || len(r.Flows) != 1 || r.Flows[0].Error != errLimit.Error() {
		t.Errorf("limit %q, %+v", r.Limit, r.Flows)
	}
	if len(r.Refused) != 1 || r.Refused[0].Name != "a.test" || r.Refused[0].Why != errLimit.Error() || r.Refused[0].Grant() != "" {
		t.Errorf("%+v", r.Refused)
	}
	up := s.host.(*told)
	wait.Until(t, "the host is told of the limit once", func() bool {
		up.mu.Lock()
		defer up.mu.Unlock()
		return slices.Equal(up.limits, []string{limit})
	})
}

// However many connections are made at once, those beyond the limit reach nothing, and
// those before it end.
func TestTheConnectionAfterTheLastInAll(t *testing.T) {
	const tools = 40
	s, at, come := limitedSession(t, network.Limits{TotalConnections: 1})
	var all sync.WaitGroup
	for range tools {
		all.Go(func() {
			tool, err := net.Dial("tcp", at)
			if err != nil {
				return
			}
			defer tool.Close()
			_ = tool.SetDeadline(time.Now().Add(20 * time.Second))
			_ = echoed(tool)
			_, _ = io.Copy(io.Discard, tool)
		})
	}
	all.Wait()
	wantNothingMore(t, s, at, "connectionsTotal")
	if r := s.report(); r.Flows[0].Connections != 1 || r.Refused[0].Count != tools || come.Load() > 1 {
		t.Errorf("%d bytes have come: %+v, %+v", come.Load(), r.Flows, r.Refused)
	}
}

// Bytes are passed on up to the limit, on all connections together.
func TestTheByteAfterTheLast(t *testing.T) {
	s, at, come := limitedSession(t, network.Limits{SentBytes: 100})
	one, other := dialled(t, at), dialled(t, at)
	for _, tool := range []net.Conn{one, other} {
		if err := echoed(tool); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := one.Write(make([]byte, 10_000)); err != nil {
		t.Fatal(err)
	}
	wantNothingMore(t, s, at, "sent", one, other)
	if n := come.Load(); n > 100 {
		t.Errorf("%d bytes have come", n)
	}
}

// Of an answer on port 80 no more is given than of other bytes, nor taken much sooner.
func TestAnAnswerBeyondTheLimit(t *testing.T) {
	const most = 20_000
	at := newSite(t)
	s, _ := newSession(t, deaf(), network.Limits{ReceivedBytes: most}, granted("a.test", at.at)...)
	s.leadTo("a.test", at.at.Addr())
	c, tool := connected(t, s)
	if _, ok := s.enter(c); !ok {
		t.Fatal("the connection is not taken in")
	}
	over := make(chan error, 1)
	go func() { over <- c.serveHTTP(target{name: "a.test", at: at.at, grant: s.spec.Grants[0]}) }()
	_, _ = io.WriteString(tool, "GET /large HTTP/1.1\r\nHost: a.test\r\n\r\n")
	got, err := io.ReadAll(tool)
	if len(got) != most || err == nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	<-over
	if r := s.report(); len(r.Flows) != 1 || r.Flows[0].Error != errLimit.Error() || r.Limit != "received" {
		t.Errorf("limit %q, %+v", r.Limit, r.Flows)
	} else if n := r.Flows[0].ReceivedBytes; n < most || n > largeAnswer/2 {
		t.Errorf("%d bytes were taken", n)
	}
}

// A connection that is still being made ends with the limit, and its flow says so.
func TestALimitWhileAConnectionIsMade(t *testing.T) {
	l := listenAt(t, "127.0.0.1:0")
	defer l.Close()
	s, _ := newSession(t, deaf(), network.Limits{}, granted("a.test", addrOf(t, l))...)
	s.names.mu.Lock()
	s.names.known["a.test"] = &lookup{done: make(chan struct{})} // which never ends
	s.names.mu.Unlock()
	c, tool := connected(t, s)
	if _, ok := s.enter(c); !ok {
		t.Fatal("the connection is not taken in")
	}
	over := make(chan error, 1)
	go func() {
		_, err := c.dial(s.trafficCtx, target{name: "a.test", at: addrOf(t, l), grant: s.spec.Grants[0]}, false)
		over <- err
	}()
	wait.Until(t, "the connection is being made", func() bool { return c.undelivered() })
	s.trip("sent")
	if err := <-over; err == nil {
		t.Error("it was made")
	}
	if _, err := tool.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	if r := s.report(); len(r.Flows) != 1 || r.Flows[0].Error != errLimit.Error() {
		t.Errorf("%+v", r.Flows)
	}
}
