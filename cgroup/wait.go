package cgroup

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// WaitEmpty waits until the group has no live process (cgroup.events says
// populated 0; zombies do not count) and returns nil, or ctx's cause if ctx ends
// first. A group is also empty before the first birth and after Remove. WaitEmpty
// does not poll: it looks once and then waits for the kernel's notice, which comes
// up to 10 ms late if the group was born or changed within the last 10 ms.
func (g *Group) WaitEmpty(ctx context.Context) error {
	for {
		emptied, err := g.emptyOrWait()
		if err == ErrRemoved {
			return nil
		}
		if emptied == nil || err != nil {
			return err
		}
		select {
		case <-emptied:
		case <-ctx.Done():
			return fmt.Errorf("cannot see group %s empty: %w", g.leaf, context.Cause(ctx))
		}
	}
}

// emptyOrWait returns nil if the group is empty, else a channel that is closed
// when it becomes so.
func (g *Group) emptyOrWait() (emptied <-chan struct{}, err error) {
	err = g.use(func() error {
		populated, err := g.checkPopulated()
		if err != nil || !populated {
			return err
		}
		emptied, err = g.awaitChange()
		return err
	})
	return emptied, err
}

// awaitChange registers for changes of cgroup.events, once. A change since the
// last read, however early, is delivered.
func (g *Group) awaitChange() (<-chan struct{}, error) {
	g.waitMu.Lock()
	if g.emptied == nil {
		g.emptied = make(chan struct{})
	}
	emptied, registered := g.emptied, g.eventsID != 0
	if !registered {
		id, err := g.root.events.add(g.events, unix.EPOLLPRI, g.eventsChanged)
		if err != nil {
			g.waitMu.Unlock()
			return nil, err
		}
		g.eventsID = id
	}
	g.waitMu.Unlock()
	_, err := g.checkPopulated() // it may have become empty just before
	return emptied, err
}

func (g *Group) eventsChanged() {
	g.tryUse(func() { _, _ = g.checkPopulated() })
}

// checkPopulated reads the state and, if empty, wakes all waiters. Every read
// must: reading also takes the change away from the watcher.
func (g *Group) checkPopulated() (bool, error) {
	g.waitMu.Lock()
	defer g.waitMu.Unlock()
	text, err := readAll(g.events)
	populated := err == nil && field(text, "populated") != 0
	if gone(err) {
		err = nil // removed by someone else: empty for certain
	}
	if err != nil {
		return false, pathError("read", g.dir.join("cgroup.events"), err)
	}
	if !populated && g.emptied != nil {
		close(g.emptied)
		g.emptied = nil
	}
	return populated, nil
}

// field returns the number after a key of a flat keyed file, 0 if absent.
func field(text, key string) int64 {
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if k == key {
			return parseInt(v)
		}
	}
	return 0
}
