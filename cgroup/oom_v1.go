package cgroup

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// eventCounter counts a v1 memory group's OOM notices: an eventfd registered
// for memory.oom_control. Source: cgroup-v1/memory.rst, "OOM Control".
//
// The kernel notifies the group whose limit ran out and then all groups below
// it, in this order, before it chooses a victim in any of them.
type eventCounter struct {
	mu      sync.Mutex
	fd      int
	control int // memory.oom_control
	count   int64
}

// newEventCounter registers for the group in d, or for its child if prefix is
// "child/".
func newEventCounter(d *dir, prefix string) (*eventCounter, error) {
	control, err := d.openFile(prefix+"memory.oom_control", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		closeFd(&control)
		return nil, os.NewSyscallError("eventfd", err)
	}
	c := &eventCounter{fd: fd, control: control}
	if err := d.write(prefix+"cgroup.event_control", fmt.Sprintf("%d %d", fd, control)); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// total returns the notices so far.
func (c *eventCounter) total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 {
		return c.count
	}
	var b [8]byte
	if n, err := unix.Read(c.fd, b[:]); err == nil && n == len(b) { // EAGAIN: nothing new
		c.count += int64(binary.NativeEndian.Uint64(b[:]))
	}
	return c.count
}

func (c *eventCounter) kills() (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 {
		return 0, ErrRemoved
	}
	text, err := readAll(c.control)
	return int64(oomControl(text).GetOomKill()), err
}

func (c *eventCounter) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	closeFd(&c.fd)
	closeFd(&c.control)
}

// oomParent counts the notices of the directory above all groups: each of
// these reached every group too, and was not the group's own.
type oomParent = eventCounter

type oomV1 struct {
	*eventCounter
	parent *oomParent
	before int64 // parent's notices before ours were counted
}

func newOOMV1(tools *dir, leaf string, parent *oomParent) (*oomV1, error) {
	// In this order a race can hide an own OOM's attribution, never invent one.
	before := parent.total()
	c, err := newEventCounter(tools, leaf+"/")
	if err != nil {
		return nil, err
	}
	return &oomV1{c, parent, before}, nil
}

func (o *oomV1) descriptor() (int, uint32) { return o.fd, unix.EPOLLIN }

func (o *oomV1) look() (oomCounts, error) {
	ours := o.total() // before the parent's: a notice under way then hides, not adds
	kills, err := o.kills()
	return oomCounts{own: max(0, ours-(o.parent.total()-o.before)), kills: kills}, err
}
