package relay

import (
	"io"
	"net"
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
		out, err := c.dial(s.ctx, target{name: "a.test", at: addrOf(t, l), grant: s.spec.Grants[0]}, false)
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
