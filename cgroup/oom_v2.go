package cgroup

import (
	"sync"

	"golang.org/x/sys/unix"
)

// oomV2 reads memory.events. Of a leaf, "oom" counts only its own limit's
// events; "oom_kill" counts its members killed under any limit. Events of
// ancestors never appear below them. Source: cgroup-v2.rst, "memory.events".
type oomV2 struct {
	mu sync.Mutex
	fd int
}

func newOOMV2(leaf *dir) (*oomV2, error) {
	fd, err := leaf.openFile("memory.events", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &oomV2{fd: fd}, nil
}

func (o *oomV2) descriptor() (int, uint32) { return o.fd, unix.EPOLLPRI }

func (o *oomV2) look() (oomCounts, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fd < 0 {
		return oomCounts{}, ErrRemoved
	}
	text, err := readAll(o.fd)
	return parseMemoryEvents(text), err
}

func parseMemoryEvents(text string) oomCounts {
	e := memoryEvents(text)
	return oomCounts{own: int64(e.GetOom()), kills: int64(e.GetOomKill())}
}

func (o *oomV2) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	closeFd(&o.fd)
}
