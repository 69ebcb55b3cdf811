package nowait

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadAPipe(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	sent := bytes.Repeat([]byte("0123456789"), 30<<10) // more than a pipe holds
	go func() {
		_, _ = write.Write(sent)
		_ = write.Close()
	}()
	if got, err := io.ReadAll(NewReader(read)); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("read %d bytes and %v, want the %d that were written", len(got), err, len(sent))
	}
}

// A reader that waits ends with its descriptor, and at a deadline.
func TestReadEnds(t *testing.T) {
	for name, end := range map[string]func(*os.File) error{
		"close":    (*os.File).Close,
		"deadline": func(f *os.File) error { return f.SetReadDeadline(time.Now()) },
	} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() {
			_, err := NewReader(read).Read(make([]byte, 1))
			failed <- err
		}()
		if err := end(read); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; !errors.Is(err, os.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a read ended with %v", name, err)
		}
		_, _ = read.Close(), write.Close()
	}
}

func TestReadAConnectionThatIsReset(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	if _, err := NewReader(client).Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read ended with %v, want a reset", err)
	}
}

func TestWriteUntilFull(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	conn, err := write.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	if err := conn.Control(func(fd uintptr) {
		for n := 0; err == nil; written += n {
			n, err = Write(int(fd), make([]byte, 4096))
		}
	}); err != nil || written == 0 {
		t.Errorf("wrote %d bytes, and %v", written, err)
	}
	if !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("writing to a full pipe ended with %v", err)
	}
}

func TestReaderWithoutADescriptor(t *testing.T) {
	r := strings.NewReader("x")
	if NewReader(r) != io.Reader(r) {
		t.Error("a reader without a descriptor was replaced")
	}
}

// Now and then a read is an ordinary one, so that the runtime looks after goroutines that wait
// for a processor.
func TestAFloodedReaderIsNotRawAlone(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if _, err := write.Write(make([]byte, 2*maxInRow)); err != nil {
		t.Fatal(err)
	}
	plain := &counted{File: read}
	r := NewReader(plain)
	for range 2 * maxInRow {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if plain.reads != 1 {
		t.Errorf("%d of %d reads were not raw, want 1", plain.reads, 2*maxInRow)
	}
}

type counted struct {
	*os.File
	reads int
}

func (c *counted) Read(b []byte) (int, error) {
	c.reads++
	return c.File.Read(b)
}
