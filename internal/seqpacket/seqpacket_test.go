package seqpacket

import (
	"errors"
	"io"
	"net"
	"testing"
)

func pair(t *testing.T) (ours *net.UnixConn, theirs net.Conn) {
	t.Helper()
	ours, file, err := Pair("end", 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// What an end has sent comes although it has not read what was sent to it.
func TestTheLastWordsOfAnEnd(t *testing.T) {
	ours, theirs := pair(t)
	for _, text := range []string{"one", "two"} {
		if _, err := theirs.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ours.Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	buf := make([]byte, 10)
	for _, want := range []string{"one", "two"} {
		if n, _, _, err := Read(ours, buf, nil); err != nil || string(buf[:n]) != want {
			t.Errorf("read %q, %v; want %q", buf[:n], err, want)
		}
	}
	if n, _, _, err := Read(ours, buf, nil); n > 0 || err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %q, %v", buf[:n], err)
	}
}
