package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// timer is what a launcher's own timer is to be. Only the newest value counts:
// where the launcher's socket is full, that is sent when it has room again.
type timer struct {
	own *Lease // where launcher and host share it; nil where the launcher is told

	mu   sync.Mutex
	at   time.Time // when the launcher is to end its tree
	late bool      // a goroutine waits for room to send at
	over bool
}

// end has no more goroutines started.
func (t *timer) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.own != nil {
		_ = t.own.Close()
	}
}

// never is longer than a machine runs.
const never = time.Duration(math.MaxInt64 / 2)

// share has a process that is about to start hold the timer itself, if it is to be moved.
// It counts as the host's clocks do: not while the machine sleeps.
func (t *timer) share(spec *Spec) (err error) {
	if !spec.Movable || spec.Lease != nil {
		return nil
	}
	if t.own, err = newLease("", unix.CLOCK_MONOTONIC); err != nil {
		return err
	}
	err = t.own.Renew(cmp.Or(spec.Timer, never))
	spec.Lease, spec.Timer = t.own, 0
	return err
}

// ErrGone is wrapped by the errors of SetTimer and Begin if the launcher has ended, or is
// about to.
var ErrGone = errors.New("the launcher is gone")

// SetTimer sets the launcher's timer to left from now. It fails with ErrGone after Gone, and
// once the launcher has closed its end of the socket, as it does when it ends. It never
// blocks: a slow launcher gets the value later, but never after a newer one.
func (p *Process) SetTimer(left time.Duration) error {
	p.timer.mu.Lock()
	defer p.timer.mu.Unlock()
	if p.timer.over || closed(p.gone) { // others may hold its end of the socket a moment longer
		return fmt.Errorf("cannot move the launcher's timer: %w", ErrGone)
	}
	if own := p.timer.own; own != nil {
		return own.Renew(left)
	}
	p.timer.at = time.Now().Add(left)
	if p.timer.late {
		return nil
	}
	raw, err := p.control.SyscallConn()
	if err == nil {
		if closed := raw.Control(func(fd uintptr) { err = p.sendTimer(fd) }); closed != nil {
			err = closed
		}
	}
	switch {
	case errors.Is(err, unix.EAGAIN):
		p.timer.late = true
		p.readers.Go(p.sendLate)
		return nil
	case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
		err = ErrGone
	case err == nil:
		return nil
	}
	return fmt.Errorf("cannot move the launcher's timer: %w", err)
}

// sendTimer sends the newest value. The caller holds the timer's mu.
func (p *Process) sendTimer(fd uintptr) error {
	message := wire.AppendNumber(nil, wire.KindTimer, uint64(max(time.Until(p.timer.at), 1)))
	for {
		err := unix.Sendto(int(fd), message, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// sendLate sends it once there is room. It ends with the control socket.
func (p *Process) sendLate() {
	raw, err := p.control.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Write(func(fd uintptr) (done bool) {
		p.timer.mu.Lock()
		defer p.timer.mu.Unlock()
		p.timer.late = p.sendTimer(fd) == unix.EAGAIN
		return !p.timer.late
	})
}
