// Package nowait reads and writes descriptors that do not block, by raw system calls.
//
// The calls of package syscall announce to the runtime that the thread may be away for long.
// In a program that was idle that wakes the runtime's monitor thread, which then looks around
// every 20 µs: half of what a short call costs the process of a tool. But only the monitor
// interrupts a goroutine that computes for long, so raw calls are for a program that does
// not, and for a peer that cannot make them wait: a process that writes to a pipe may hold
// the pipe's lock for as long as it likes.
package nowait

import (
	"errors"
	"io"
	"os"
	"syscall"
	"unsafe"
)

// Brief marks a provider of tools that never computes for long.
type Brief interface{ Brief() }

// Write is [syscall.Write] to a descriptor that does not block.
func Write(fd int, b []byte) (int, error) { return call(syscall.SYS_WRITE, uintptr(fd), b) }

func call(trap, fd uintptr, b []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch err {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, err
		}
	}
}

// maxInRow is how many reads in a row may find something and be raw: a program that is flooded
// computes for long.
const maxInRow = 8

type reader struct {
	io.Reader
	conn  syscall.RawConn
	inRow int
}

// NewReader returns a reader of a network connection or of a pipe of [os.Pipe]; r itself if
// it has no descriptor. Only one goroutine at a time may read.
func NewReader(r io.Reader) io.Reader {
	with, ok := r.(syscall.Conn)
	if !ok {
		return r
	}
	conn, err := with.SyscallConn()
	if err != nil {
		return r
	}
	return &reader{Reader: r, conn: conn}
}

// Read waits in the runtime's poller until there is something to read.
func (r *reader) Read(b []byte) (n int, err error) {
	if r.inRow++; r.inRow > maxInRow {
		r.inRow = 0
		return r.Reader.Read(b)
	}
	outer := r.conn.Read(func(fd uintptr) bool {
		n, err = call(syscall.SYS_READ, fd, b)
		if !errors.Is(err, syscall.EAGAIN) {
			return true
		}
		r.inRow = 0
		return false
	})
	switch {
	case outer != nil: // closed, or too late: in the words that callers know
		return r.Reader.Read(b)
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}
