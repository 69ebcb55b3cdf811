package sandbox

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// An unprivileged host is nobody special to a user of the call's own: its
// zygote connects for it. Root may by itself.
func TestDial(t *testing.T) {
	w := enter(t)
	c := w.run(w.plan(Policy{}, Task{}), "listen")
	if got := c.line(); got != "ready\n" {
		t.Fatalf("the tool says %q", got)
	}
	dial := c.Dialer()
	if os.Geteuid() == 0 || c.UID() == os.Geteuid() {
		if dial != nil {
			t.Error("a way to connect that is not needed")
		}
		return
	}
	conn, err := dial(wait.Context(t), "s")
	must(t, err)
	defer conn.Close()
	buf := make([]byte, 9)
	if n, err := conn.Read(buf); err != nil || string(buf[:n]) != "hello" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	for name, want := range map[string]error{"missing": syscall.ENOENT, "../workspace": syscall.EXDEV, ".": syscall.ENOTSOCK} {
		if conn, err := dial(wait.Context(t), name); conn != nil || !errors.Is(err, want) {
			t.Errorf("dial(%q) = %v, %v; want %v", name, conn, err, want)
		}
	}
}

// Any zygote connects, not only that which the tool was born of.
func TestDialAfterTheZygotesDeath(t *testing.T) {
	w := enter(t)
	c := w.run(w.plan(Policy{}, Task{}), "listen")
	if got := c.line(); got != "ready\n" {
		t.Fatalf("the tool says %q", got)
	}
	old := w.z
	must(t, syscall.Kill(zygotePID(t), syscall.SIGKILL))
	<-old.gone
	conn, err := c.dial(wait.Context(t), "s")
	must(t, err)
	must(t, conn.Close())
}
