package seqpacket

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func pair(t *testing.T) (ends [2]*net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "end")
		conn, err := net.FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		t.Cleanup(func() { _ = conn.Close() })
		ends[i] = conn.(*net.UnixConn)
	}
	return ends
}

// What an end has sent comes although it has not read what was sent to it.
func TestTheLastWordsOfAnEnd(t *testing.T) {
	ends := pair(t)
	for _, text := range []string{"one", "two"} {
		if _, err := ends[1].Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ends[0].Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	_ = ends[1].Close()
	buf := make([]byte, 10)
	for _, want := range []string{"one", "two"} {
		if n, _, _, err := Read(ends[0], buf, nil); err != nil || string(buf[:n]) != want {
			t.Errorf("read %q, %v; want %q", buf[:n], err, want)
		}
	}
	if n, _, _, err := Read(ends[0], buf, nil); n > 0 || err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %q, %v", buf[:n], err)
	}
}
