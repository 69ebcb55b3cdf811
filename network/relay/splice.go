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

// pipeBytes is a pipe's size as it is made. It is also the most that one splice
// from a socket moves.
const pipeBytes = 64 << 10

// largeBytes is the size of the few pipes for streams: larger parts wake three
// processes less often, and parts larger than a processor's cache are slower again.
// Enlarged pipes count towards the pages that one user may have in pipes, after
// which every new one gets two (pipe(7)).
const largeBytes = 512 << 10

// sparePipes are kept for the next connection on which something moves; there are
// never more than largePipes large ones.
const (
	sparePipes = 16
	largePipes = 8
)

// pipe is what spliced bytes pass through.
type pipe struct {
	r, w  int
	large bool
}

// pipes are those that are empty, and how many large ones may still be made.
type pipes struct{ small, large, unmade chan pipe }

var spare = newPipes()

func newPipes() pipes {
	p := pipes{make(chan pipe, sparePipes), make(chan pipe, largePipes), make(chan pipe, largePipes)}
	for range largePipes {
		p.unmade <- pipe{}
	}
	return p
}

// take has a large pipe for a stream where there is one.
func (p pipes) take(stream bool) (pipe, error) {
	if stream {
		select {
		case got := <-p.large:
			return got, nil
		default:
		}
		select {
		case <-p.unmade:
			return p.makeLarge()
		default:
		}
	}
	select {
	case got := <-p.small:
		return got, nil
	default:
		return makePipe()
	}
}

// makeLarge has a small pipe where the user may have no more large ones, and then
// does not ask again.
func (p pipes) makeLarge() (pipe, error) {
	got, err := makePipe()
	if err != nil {
		p.unmade <- pipe{}
		return got, err
	}
	if _, err := unix.FcntlInt(uintptr(got.w), unix.F_SETPIPE_SZ, largeBytes); err == nil {
		got.large = true
	}
	return got, nil
}

func makePipe() (pipe, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return pipe{}, os.NewSyscallError("pipe2", err)
	}
	return pipe{r: fds[0], w: fds[1]}, nil
}

// give returns an empty pipe.
func (p pipes) give(empty pipe) {
	if empty.large {
		p.large <- empty // which has room for all of them
		return
	}
	select {
	case p.small <- empty:
	default:
		empty.close()
	}
}

// drop closes a pipe in which something is left.
func (p pipes) drop(full pipe) {
	full.close()
	if full.large {
		p.unmade <- pipe{}
	}
}

func (p pipe) close() {
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

// pump copies one direction of a connection.
type pump struct {
	from, to *net.TCPConn
	gauge    *gauge
	idle     time.Duration
	most     int // bytes at once
	// active is when something last moved either way, in Unix nanoseconds.
	active *atomic.Int64
	// isCut says that deadlines in the past are for good.
	isCut *atomic.Bool
}

// fromError is an error of a pump's source; all others are of its destination, or
// of limits.
type fromError struct{ error }

func (e fromError) Unwrap() error { return e.error }

// errIdle is why a connection ends on which nothing has moved for too long.
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
	if err := p.await(); err != nil {
		return err
	}
	for n := 0; ; {
		n, err = p.once(src, dst, n >= pipeBytes)
		if err != nil || n == 0 {
			return err
		}
	}
}

// once moves what there is, and waits for something. It holds a pipe only while
// something is in it.
func (p pump) once(src, dst syscall.RawConn, stream bool) (int, error) {
	through, n, err := p.fill(src, stream && p.most > pipeBytes)
	if err != nil || n == 0 {
		return 0, err
	}
	if err := p.gauge.count(n); err != nil {
		spare.drop(through)
		return 0, err
	}
	p.active.Store(time.Now().UnixNano()) // a wait for the rate is no idle time
	for left := n; left > 0; {
		moved, err := p.drain(dst, through, left)
		if err != nil {
			spare.drop(through)
			return 0, err
		}
		p.active.Store(time.Now().UnixNano())
		left -= moved
	}
	spare.give(through)
	return n, nil
}

// fill splices from a socket; without bytes there is no pipe.
func (p pump) fill(src syscall.RawConn, stream bool) (through pipe, n int, err error) {
	for {
		waited := src.Read(func(fd uintptr) bool {
			if through, err = spare.take(stream); err != nil {
				return true
			}
			n, err = spliceOnce(int(fd), through.w, p.gauge.atOnce(p.most))
			if n > 0 {
				return true
			}
			spare.give(through)
			return err != unix.EAGAIN
		})
		if errors.Is(waited, os.ErrDeadlineExceeded) {
			if err := p.await(); err != nil {
				return pipe{}, 0, err
			}
			continue // something has moved meanwhile, this way or the other
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

// await sets when both sides are next looked at although nothing moved: a new deadline
// for each part that moves would cost more than the part.
func (p pump) await() error {
	last := time.Unix(0, p.active.Load())
	if p.idle > 0 {
		_ = p.from.SetReadDeadline(last.Add(p.idle))
		_ = p.to.SetWriteDeadline(last.Add(p.idle))
	}
	if p.isCut.Load() { // after the deadlines, which have overwritten cut's
		return net.ErrClosed
	}
	if p.idle > 0 && time.Since(last) >= p.idle {
		return errIdle
	}
	return nil
}

// drain splices to a socket, and waits for as long as something moves either way.
func (p pump) drain(dst syscall.RawConn, through pipe, most int) (n int, err error) {
	for {
		waited := dst.Write(func(fd uintptr) bool {
			n, err = spliceOnce(through.r, int(fd), most)
			return err != unix.EAGAIN
		})
		if errors.Is(waited, os.ErrDeadlineExceeded) {
			if err := p.await(); err != nil {
				return 0, err
			}
			continue
		}
		if waited != nil {
			return 0, waited
		}
		if err == nil && n == 0 {
			err = io.ErrShortWrite
		}
		return n, err
	}
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
