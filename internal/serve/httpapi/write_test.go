package httpapi

import (
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// deadlines counts how often a write's limit was moved.
type deadlines struct {
	*httptest.ResponseRecorder
	moved int
}

func (d *deadlines) SetWriteDeadline(time.Time) error {
	d.moved++
	return nil
}

// A reader that takes a little within the time is waited for, though nothing more can be written
// yet; one that takes nothing is not.
func TestASlowReaderIsWaitedFor(t *testing.T) {
	t.Parallel()
	for network, address := range map[string]string{"unix": filepath.Join(t.TempDir(), "s"), "tcp": "127.0.0.1:0"} {
		reader, writer := joined(t, network, address)
		fill(t, writer.(syscall.Conn))
		limits := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		p := newPatientWriter(limits, time.Hour, writer)
		p.begin()
		look := func() int {
			before := limits.moved
			p.look()
			return limits.moved - before
		}
		until(t, "nothing more arrives", func() bool { return look() == 0 })
		until(t, "what was taken is seen", func() bool {
			if _, err := io.CopyN(io.Discard, reader, writeBytes); err != nil {
				t.Fatal(err)
			}
			return look() == 1
		})
		p.end()
		if look() != 0 {
			t.Errorf("%s: a look behind the write moves its limit", network)
		}
	}
}

// fill writes what there is room for.
func fill(t *testing.T, socket syscall.Conn) {
	t.Helper()
	raw, err := socket.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var full error
	if err := raw.Control(func(fd uintptr) {
		for full == nil {
			_, full = syscall.Write(int(fd), make([]byte, writeBytes))
		}
	}); err != nil || !errors.Is(full, syscall.EAGAIN) {
		t.Fatal(err, full)
	}
}

// joined are the two ends of a connection.
func joined(t *testing.T, network, address string) (one, other net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if one, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if other, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { one.Close(); other.Close() })
	return one, other
}
