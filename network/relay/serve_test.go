package relay

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
)

// newControl is a host's connection to a relay that runs in this process, and what
// comes of the relay.
func newControl(t *testing.T, h Handler) (*Client, chan error) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- serve(connOf(t, fds[1])) }()
	client := NewClient(connOf(t, fds[0]), h)
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Hello(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return client, over
}

func connOf(t *testing.T, fd int) *net.UnixConn {
	file := os.NewFile(uintptr(fd), "control")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		t.Error(err)
		return nil
	}
	return conn.(*net.UnixConn)
}

// A relay without descriptors refuses a session, and serves the others.
func TestWithoutDescriptors(t *testing.T) {
	client, over := newControl(t, nil)
	var files []*os.File
	for range 8 {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		files = append(files, file)
	}
	begun := beginWith(t, files[7].Fd()+4, func() error {
		opened, err := client.Open(Session{ID: "a"}, files)
		if err != nil {
			return err
		}
		return opened(t.Context())
	})
	if _, refused := begun.(RefusedError); !refused {
		t.Errorf("%T %v", begun, begun)
	}
	if err := client.Hello(t.Context(), nil); err != nil {
		t.Error(err)
	}
	_ = client.Close()
	select {
	case err := <-over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the relay does not end")
	}
}

// beginWith does something while the process may have so many descriptors.
func beginWith(t *testing.T, most uintptr, do func() error) error {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(most), Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) }()
	return do()
}

// What one call has done may be too much for a message: that costs its record, and no other
// call its relay.
func TestARecordThatIsTooLarge(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, client := &server{conn: connOf(t, fds[1])}, NewClient(connOf(t, fds[0]), nil)
	defer s.conn.Close()
	defer client.Close()
	large := &api.Network{Refused: []api.NetworkRefusal{{Name: strings.Repeat("x", maxMessageBytes)}}}
	go func() {
		for id := range uint64(2) {
			if _, err := s.conn.Read(make([]byte, 4096)); err != nil {
				t.Error(err)
			}
			s.say(message{Op: opReport, ID: id + 1, Report: large})
		}
	}()
	for range 2 {
		got, err := client.Report(t.Context(), "a", "")
		if _, refused := errors.AsType[RefusedError](err); !refused || got != nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
