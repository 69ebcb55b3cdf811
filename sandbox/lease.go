package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lease is a timer that the host shares with the launchers of one or more processes
// (timerfd_create(2)). When it expires, each launcher ends its process tree, even if the host
// is stopped or starved. It uses CLOCK_BOOTTIME, which includes the time that the machine is
// suspended. Its methods are safe for concurrent use.
type Lease struct {
	name string
	file *os.File
}

// NewLease returns a lease that is expired until it is renewed. The name identifies the group
// of processes that may end together.
func NewLease(name string) (*Lease, error) { return newLease(name, unix.CLOCK_BOOTTIME) }

func newLease(name string, clock int) (*Lease, error) {
	fd, err := unix.TimerfdCreate(clock, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot make a timer for launchers: %w", err)
	}
	l := &Lease{name, os.NewFile(uintptr(fd), "lease")}
	if err := l.Renew(0); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// Name returns the lease's name; it is "" for nil.
func (l *Lease) Name() string {
	if l == nil {
		return ""
	}
	return l.name
}

// share is the timer for a launcher that is about to start. Close leaves it alone.
func (l *Lease) share() (*os.File, error) {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("cannot start with a lease: %w", err)
	}
	fd := -1
	controlled := raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	if err := cmp.Or(controlled, err); err != nil {
		return nil, fmt.Errorf("cannot start with a lease: %w", err)
	}
	return os.NewFile(uintptr(fd), "lease"), nil
}

// Renew makes the lease expire after left, or at once if left is not positive. Processes that
// have ended by it stay ended.
func (l *Lease) Renew(left time.Duration) error {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("cannot renew a lease: %w", err)
	}
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(left, 1)))}
	var set error
	if err := raw.Control(func(fd uintptr) { set = unix.TimerfdSettime(int(fd), 0, &at, nil) }); err != nil {
		return fmt.Errorf("cannot renew a lease: %w", err)
	}
	if set != nil {
		return fmt.Errorf("cannot renew a lease: %w", set)
	}
	return nil
}

// Close closes the host's timer, after which no process can be started with the lease. For
// processes that have it, including one being started, it expires as last set.
func (l *Lease) Close() error { return l.file.Close() }

// Uptime returns the time since the machine's boot, including suspension, as leases count it.
func Uptime() (time.Duration, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		return 0, fmt.Errorf("cannot read the machine's uptime: %w", err)
	}
	return time.Duration(at.Nano()), nil
}
