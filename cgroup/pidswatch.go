package cgroup

import (
	"sync"

	"golang.org/x/sys/unix"
)

// pidsWatch stands in for pids.peak on kernels without it (before 6.1): at each
// notice that a fork failed it reads pids.current, and keeps the highest. That
// is a lower bound: it may prove that the own limit was reached, never disprove.
// (v1 sends no such notice since Linux 6.11, but has pids.peak then.)
type pidsWatch struct {
	mu      sync.Mutex
	id      int32
	events  int // pids.events
	current int // pids.current
	highest int64
}

func (g *Group) watchPids() error {
	h := g.root.limited[ctrlPids]
	if h == nil || g.root.feat.pidsPeak || g.limits.Pids == 0 {
		return nil
	}
	w := &pidsWatch{events: -1, current: -1}
	g.pids = w
	var err error
	if w.events, err = h.tools.openFile(g.leaf+"/pids.events", unix.O_RDONLY); err != nil {
		return err
	}
	if w.current, err = h.tools.openFile(g.leaf+"/pids.current", unix.O_RDONLY); err != nil {
		return err
	}
	_, _ = readAll(w.events) // arms the notice
	w.id, err = g.root.events.add(w.events, unix.EPOLLPRI, func() { g.tryUse(w.look) })
	return err
}

func (w *pidsWatch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text, err := readAll(w.current); err == nil {
		w.highest = max(w.highest, parseInt(text))
	}
	_, _ = readAll(w.events)
}

func (w *pidsWatch) peak() int64 {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.highest
}

func (w *pidsWatch) close(events *watcher) {
	if w == nil {
		return
	}
	events.forget(w.id)
	closeFd(&w.events)
	closeFd(&w.current)
}
