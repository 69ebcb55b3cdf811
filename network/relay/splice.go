package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipeBytes is a pipe's size as it is made: a larger one counts towards what one
// user may have in pipes, after which every pipe gets two pages (pipe(7)).
const pipeBytes = 64 << 10

// spliceBytes bounds what passes at once. A pipe has slots, not bytes, and each
// takes a fragment of a socket's buffer, which has up to 32 KiB.
const spliceBytes = 1 << 20

// sparePipes are kept for the next connection on which something moves.
const sparePipes = 16

// pipe is what spliced bytes pass through.
type pipe struct{ r, w int }

var spare = make(chan pipe, sparePipes)

func takePipe() (pipe, error) {
	select {
	case p := <-spare:
		return p, nil
	default:
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return pipe{}, os.NewSyscallError("pipe2", err)
	}
	return pipe{fds[0], fds[1]}, nil
}

// give returns an empty pipe.
func (p pipe) give() {
	select {
	case spare <- p:
	default:
		p.close()
	}
}

func (p pipe) close() {
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

// pump copies one direction of a connection.
type pump struct {
	from, to *net.TCPConn
	// moved is told how much has been copied; an error ends the copy.
	moved func(n int) error
	idle  time.Duration
	most  int // bytes at once
	// active is when something last moved either way, in Unix nanoseconds.
	active *atomic.Int64
}

// fromError is an error of a pump's source; all others are of its destination, or
// of limits.
type fromError struct{ error }

func (e fromError) Unwrap() error { return e.error }

// errIdle: nothing has moved for too long.
var errIdle = errors.New("nothing was sent or received for too long")

// run copies until the source ends, which is not an error.
func (p pump) run() error {
	src, err := p.from.SyscallConn()
	if err != nil {
		return err
	}
	dst, err := p.to.SyscallConn()
	if err != nil {
		return err
	}
	for {
		n, err := p.once(src, dst)
		if n > 0 {
			p.active.Store(time.Now().UnixNano())
			if err := p.moved(n); err != nil {
				return err
			}
		}
		if err != nil || n == 0 {
			return err
		}
	}
}

// once moves what there is, and waits for something. It holds a pipe only while
// something is in it.
func (p pump) once(src, dst syscall.RawConn) (int, error) {
	through, n, err := p.fill(src)
	if err != nil || n == 0 {
		return 0, err
	}
	for left := n; left > 0; {
		moved, err := drain(dst, through, left)
		if err != nil {
			through.close() // something is left in it
			return n - left, err
		}
		left -= moved
	}
	through.give()
	return n, nil
}

// fill splices from a socket; without bytes there is no pipe.
func (p pump) fill(src syscall.RawConn) (through pipe, n int, err error) {
	for {
		if p.idle > 0 {
			_ = p.from.SetReadDeadline(time.Unix(0, p.active.Load()).Add(p.idle))
		}
		waited := src.Read(func(fd uintptr) bool {
			if through, err = takePipe(); err != nil {
				return true
			}
			n, err = spliceOnce(int(fd), through.w, p.most)
			if n > 0 {
				return true
			}
			through.give()
			return err != unix.EAGAIN
		})
		if errors.Is(waited, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, p.active.Load())) < p.idle {
			continue // something has moved the other way
		}
		if errors.Is(waited, os.ErrDeadlineExceeded) {
			return pipe{}, 0, errIdle
		}
		if waited != nil {
			err = waited
		}
		if err != nil {
			err = fromError{err}
		}
		return through, n, err
	}
}

func drain(dst syscall.RawConn, through pipe, most int) (n int, err error) {
	waited := dst.Write(func(fd uintptr) bool {
		n, err = spliceOnce(through.r, int(fd), most)
		return err != unix.EAGAIN
	})
	if waited != nil {
		return 0, waited
	}
	if err == nil && n == 0 {
		err = io.ErrShortWrite
	}
	return n, err
}

func spliceOnce(from, to, most int) (int, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, most, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if err != unix.EINTR {
			return int(max(n, 0)), err
		}
	}
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
