package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Go's runtime waits for a pipe that a client has made, though another process has its
// ends, too. A file that is not a pipe stays as it is.
func TestAPipeIsPolled(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	read, write := os.NewFile(uintptr(ends[0]), "read"), os.NewFile(uintptr(ends[1]), "write")
	defer read.Close()
	own := polled(read)
	defer own.Close()
	if own == read || own.SetReadDeadline(time.Now().Add(time.Minute)) != nil {
		t.Fatal("a read of the pipe keeps a thread")
	}
	if flags, _, failed := syscall.Syscall(syscall.SYS_FCNTL, uintptr(ends[0]), syscall.F_GETFL, 0); failed != 0 || flags&syscall.O_NONBLOCK != 0 {
		t.Errorf("the end that others may share does not wait any more: %#o, %v", flags, failed)
	}
	go func() {
		_, _ = write.WriteString("a")
		_ = write.Close()
	}()
	for _, want := range []int{1, 0} {
		if n, _ := own.Read(make([]byte, 8)); n != want {
			t.Errorf("read %d bytes, want %d", n, want)
		}
	}
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if polled(plain) != plain {
		t.Error("a plain file is another one")
	}
}
