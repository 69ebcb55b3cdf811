package cgroup

import (
	"sync"
	"time"
)

// oomSource reads what a memory controller tells about OOM in one group.
type oomSource interface {
	// descriptor is what to watch, and for which epoll events.
	descriptor() (fd int, events uint32)
	// look returns the counts up to now. It is safe for concurrent use.
	look() (oomCounts, error)
	close()
}

// oomCounts tell a group's own limit from its ancestors'.
type oomCounts struct {
	own   int64 // times that the group's own limit ran out and a kill was due
	kills int64 // members killed, whoever's limit it was
}

// oomWatch is one group's OOM notice. An OOM of an ancestor notifies a v1 group
// before the victim is chosen, perhaps in another group: then it looks again,
// a few times, until it knows.
type oomWatch struct {
	source oomSource
	id     int32
	fire   func()

	mu     sync.Mutex
	fired  bool
	closed bool
	retry  *time.Timer
	wait   time.Duration
}

const (
	oomFirstLook = time.Millisecond
	oomLastLook  = time.Second // the kernel has chosen and counted its victim long before
)

// OOM returns a channel that receives one value when memory ran out under the
// group's own limit, or a member was killed because memory ran out under an
// ancestor's. On cgroup2 the kernel kills the whole group; on v1 it kills one
// process and the caller must kill the rest.
func (g *Group) OOM() <-chan struct{} { return g.oomFired }

func (g *Group) watchOOM() error {
	h := g.root.limited[ctrlMemory]
	if h == nil {
		return nil
	}
	source, err := g.openOOM(h)
	if err != nil {
		return err
	}
	w := &oomWatch{source: source, wait: oomFirstLook, fire: func() { g.oomFired <- struct{}{} }}
	fd, events := source.descriptor()
	// On v1 a notice without a kill may be followed by one.
	again := h.version == 1
	if w.id, err = g.root.events.add(fd, events, func() { g.tryUse(func() { w.noticed(again) }) }); err != nil {
		source.close()
		return err
	}
	g.oom = w
	return nil
}

func (g *Group) openOOM(h *hierarchy) (oomSource, error) {
	if h.version != 1 {
		return newOOMV2(g.dir)
	}
	above := g.root.oom
	if g.share != nil {
		above = g.share.oom.(*oomV1).eventCounter
	}
	return newOOMV1(h.tools, g.leaf, above)
}

// noticed looks at the kernel's notice, and from then on at growing intervals.
func (w *oomWatch) noticed(again bool) {
	w.mu.Lock()
	w.wait = oomFirstLook
	w.mu.Unlock()
	_, _ = w.look(again) // Usage will tell
}

// look fires once if there was an OOM; else, if again, it looks later.
func (w *oomWatch) look(again bool) (oomCounts, error) {
	c, err := w.source.look()
	if err != nil {
		return c, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.fired {
		return c, nil
	}
	if c.own > 0 || c.kills > 0 {
		w.fired = true
		w.fire() // buffered, once: never blocks
	} else if again && w.wait <= oomLastLook && w.retry == nil {
		w.retry = time.AfterFunc(w.wait, w.lookAgain)
		w.wait *= 2
	}
	return c, nil
}

func (w *oomWatch) lookAgain() {
	w.mu.Lock()
	w.retry = nil
	w.mu.Unlock()
	_, _ = w.look(true)
}

func (g *Group) stopOOM() {
	if g.oom == nil {
		return
	}
	g.root.events.forget(g.oom.id)
	g.oom.mu.Lock()
	defer g.oom.mu.Unlock()
	g.oom.closed = true
	if g.oom.retry != nil {
		g.oom.retry.Stop()
	}
	g.oom.source.close()
}
