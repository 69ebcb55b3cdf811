package cgroup

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// rmdirPatience bounds the wait for a cgroup that is empty but not yet
	// free: the kernel lets go of dead tasks a moment later.
	rmdirPatience  = 500 * time.Millisecond
	rmdirFirstWait = 50 * time.Microsecond
	// maxDepth bounds a descent into cgroups that a tool made below its own.
	maxDepth = 32
)

// Remove closes the group's descriptors and removes its directories. Call it
// after WaitEmpty: with members left it fails after half a second, and may be
// called again. After success it does nothing.
func (g *Group) Remove() error {
	g.EndBoost()
	g.root.mu.RLock()
	defer g.root.mu.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.removed {
		g.removed = true
		g.left = g.root.hierarchies()
		g.closeFiles()
	}
	switch {
	case len(g.left) == 0:
		return nil
	case g.root.closed:
		return fmt.Errorf("cannot remove group %s: %w", g.leaf, ErrRemoved)
	}
	if err := g.removeLeft(); err != nil {
		return err
	}
	g.share.leave(g.weight())
	return nil
}

// removeLeft takes cgroup2 last: while it is there the group can be found.
func (g *Group) removeLeft() error {
	var left []*hierarchy
	var errs []error
	deadline := time.Now().Add(rmdirPatience) // for all together
	for _, h := range slices.Backward(g.left) {
		if err := rmdirDeep(h.tools, g.leaf, 0, deadline); err != nil {
			left, errs = append(left, h), append(errs, err)
		}
	}
	slices.Reverse(left)
	g.left = left
	if len(errs) > 0 {
		return fmt.Errorf("cannot remove group %s: %w", g.leaf, errors.Join(errs...))
	}
	return nil
}

func rmdirRetry(d *dir, name string) error {
	return rmdirDeep(d, name, 0, time.Now().Add(rmdirPatience))
}

// rmdirDeep removes a cgroup and those below it. One that is already gone is not an
// error.
func rmdirDeep(d *dir, name string, depth int, deadline time.Time) error {
	for wait := rmdirFirstWait; ; wait = min(2*wait, 20*time.Millisecond) {
		err := d.rmdir(name)
		if err == nil || gone(err) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || depth >= maxDepth || time.Now().After(deadline) {
			return err
		}
		if removeChildren(d, name, depth, deadline) == 0 {
			time.Sleep(wait)
		}
	}
}

// removeChildren returns how many of name's children it removed.
func removeChildren(d *dir, name string, depth int, deadline time.Time) int {
	sub, err := d.sub(name)
	if err != nil {
		return 0
	}
	defer sub.close()
	names, err := sub.names(true)
	if err != nil {
		return 0
	}
	removed := 0
	for _, child := range names {
		if rmdirDeep(sub, child, depth+1, deadline) == nil {
			removed++
		}
	}
	return removed
}
