package cgroup

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/lazy"
)

const (
	toolsPrefix = "toolhost-"
	leafPrefix  = "c-"
	// sweepPatience bounds the wait for one dead owner's processes to die.
	sweepPatience = 5 * time.Second
)

var toolsName = lazy.Regexp(`^toolhost-[0-9]+-[0-9a-f]{16}$`)

// SweepLeft is a directory that Sweep could not remove.
type SweepLeft struct {
	Path string
	Err  error
}

// Sweep removes what dead toolhosts of this user left below our base: their
// processes, killed through cgroup2 only, and their directories. An owner holds a
// flock on its directories, which the kernel releases when the owner dies. So a
// process that gets the lock knows that the owner is dead, even if its PID was
// reused, and keeps other sweepers away. Sweep ignores names that toolhost does not
// make. Of the leaves that supervisors move to in cgroup2 it removes the empty ones.
// It waits up to 5 s for each dead owner's processes. The error is about listing
// only; directories that could not be removed are in left.
func (r *Root) Sweep() (left []SweepLeft, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return nil, ErrRemoved
	}
	// v2 goes first: there the members are killed, which frees v1.
	var errs []error
	for _, h := range r.hierarchies() {
		more, err := r.sweepHierarchy(h)
		left, errs = append(left, more...), append(errs, err)
	}
	return left, errors.Join(errs...)
}

func (r *Root) sweepHierarchy(h *hierarchy) (left []SweepLeft, err error) {
	names, err := h.base.names(true)
	if err != nil {
		return nil, fmt.Errorf("cannot sweep: %w", err)
	}
	for _, name := range names {
		switch sweepable(name, r.name, h.version) {
		case sweepTools:
			if err := sweepOne(h, name); err != nil {
				left = append(left, SweepLeft{h.base.join(name), err})
			}
		case sweepLeaf:
			sweepEmptyLeaf(h.base, name)
		}
	}
	return left, nil
}

type sweepKind int

const (
	sweepNothing sweepKind = iota
	sweepTools
	sweepLeaf
)

// sweepable tells what a directory beside ours may be, by its name alone. The
// lock and the owner decide the rest. In v1 nobody needs a leaf.
func sweepable(name, own string, version int) sweepKind {
	switch {
	case name == own:
		return sweepNothing
	case toolsName().MatchString(name):
		return sweepTools
	case version == 2 && leafName().MatchString(name):
		return sweepLeaf
	}
	return sweepNothing
}

// sweepOne removes one directory if its owner is dead.
func sweepOne(h *hierarchy, name string) error {
	d, err := lockedSub(h.base, name)
	if ownerAlive(err) || gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close() // and with it the lock, after the directory is gone
	if !ownedByUs(d) {
		return nil
	}
	if h.version == 2 {
		if err := killAll(d); err != nil {
			return err
		}
	}
	return rmdirRetry(h.base, name)
}

// ownerAlive: EWOULDBLOCK is a held lock, ESTALE a directory that another
// sweeper or its owner has just replaced, EACCES another user's.
func ownerAlive(err error) bool {
	return errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.ESTALE) || errors.Is(err, unix.EACCES)
}

func ownedByUs(d *dir) bool {
	var st unix.Stat_t
	return unix.Fstat(d.fd, &st) == nil && int(st.Uid) == os.Geteuid()
}

// killAll kills everything below d and waits for it.
func killAll(d *dir) error {
	events, err := d.openFile("cgroup.events", unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(events)
	if err := d.write("cgroup.kill", "1"); err != nil {
		return err
	}
	return pollEmpty(events, time.Now().Add(sweepPatience))
}

// pollEmpty waits in poll(2) for populated 0.
func pollEmpty(events int, deadline time.Time) error {
	for {
		text, err := readAll(events)
		if err != nil || field(text, "populated") == 0 {
			return err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return errors.New("its processes did not die in time")
		}
		fds := []unix.PollFd{{Fd: int32(events), Events: unix.POLLPRI}}
		_, err = retry(func() (int, error) { return unix.Poll(fds, int(left.Milliseconds())+1) })
		if err != nil {
			return os.NewSyscallError("poll", err)
		}
	}
}
