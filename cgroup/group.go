package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Group is one leaf: the cgroup of one call's process tree, used once. It is
// safe for concurrent use. Remove must be called when it is empty; it holds
// four descriptors until then, so that killing never needs a new one.
type Group struct {
	root   *Root
	leaf   string // directory below the root's
	limits Limits
	share  *shared // whose directory it is in; nil if none
	// shareOOMs is how often the Share's memory had run out before.
	shareOOMs int64
	rests     bool         // it counts nothing in its Share; guarded by root.sharesMu
	tasks     atomic.Int64 // the pids limit since LimitTasks

	boosted atomic.Bool

	cpu   []write // the CPU limits, for LimitCPU
	cpuMu sync.Mutex
	dies  bool // they are lifted, or never come into force; guarded by cpuMu

	mu      sync.RWMutex // held for reading by every use of the descriptors
	removed bool
	left    []*hierarchy // where the directory remains, after removed
	dir     *dir         // in cgroup2
	kill    int          // cgroup.kill
	events  int          // cgroup.events

	waitMu   sync.Mutex
	emptied  chan struct{} // closed when populated 0 is seen; nil if nobody waits
	eventsID int32         // the watcher's number for events, 0 before the first wait

	again rereads

	oom  *oomWatch  // nil without a memory controller
	pids *pidsWatch // only where the kernel has no pids.peak

	oomFired chan struct{} // buffered, at most one value

	tree atomic.Pointer[descent] // without cgroups only
}

// maxNameBytes keeps c-<name> far below NAME_MAX.
const maxNameBytes = 128

// NewGroup makes a leaf and sets its limits, except for the CPU limits, which
// LimitCPU sets. The name (letters, digits, '.', '_', '-', at most 128 bytes) must
// be new: for an existing directory the error matches fs.ErrExist. If a limit cannot
// be enforced here the error is a [ControllerError] and nothing is left behind.
func (r *Root) NewGroup(name string, l Limits) (*Group, error) {
	return r.NewGroupIn(Share{}, name, l)
}

// NewGroupIn is like NewGroup, for a group of a Share.
func (r *Root) NewGroupIn(s Share, name string, l Limits) (*Group, error) {
	if err := errors.Join(checkName(name), r.CheckShare(s)); err != nil {
		return nil, err
	}
	if own := s.Limits.CPUPercent; own > 0 {
		l.CPUPercent = min(l.CPUPercent, own)
	}
	l.CPUPercent = r.all.within(l.CPUPercent)
	writes, err := r.plan(l)
	if err != nil {
		return nil, err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch {
	case r.closed:
		return nil, ErrRemoved
	case r.mode == ModeNone:
		return r.bare(name), nil
	}
	g := &Group{root: r, leaf: leafPrefix + name, limits: l, kill: -1, events: -1, oomFired: make(chan struct{}, 1)}
	now := make([]write, 0, len(writes))
	for _, w := range writes {
		if w.controller == ctrlCPU {
			g.cpu = append(g.cpu, w)
		} else {
			now = append(now, w)
		}
	}
	if g.share, err = r.join(s, g.weight()); err == nil {
		err = g.create(now)
	}
	if err != nil {
		g.share.leave(g.weight())
		return nil, notCreated(name, err)
	}
	return g, nil
}

func notCreated(name string, err error) error {
	if remedy := causeRemedy(err); remedy != "" {
		return fmt.Errorf("cannot create group %s: %w; %s", name, err, remedy)
	}
	return fmt.Errorf("cannot create group %s: %w", name, err)
}

// weight is what it counts in its Share.
func (g *Group) weight() int64 {
	if g.rests {
		return 0
	}
	return cmp.Or(g.limits.CPUWeight, defaultWeight)
}

func checkName(name string) error {
	ok := name != "" && len(name) <= maxNameBytes
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf("group name %q is invalid: use 1 to %d letters, digits, '.', '_' or '-'", name, maxNameBytes)
	}
	return nil
}

func (g *Group) create(writes []write) error {
	if g.share != nil {
		g.leaf, g.shareOOMs = g.share.dir+"/"+g.leaf, g.share.ooms()
	}
	made, err := g.mkdirs()
	if err == nil {
		err = g.root.apply(g.leaf+"/", writes)
	}
	if err == nil {
		err = g.openFiles()
	}
	if err != nil {
		return errors.Join(err, g.undo(made))
	}
	return nil
}

// mkdirs makes the leaf in each hierarchy and returns where it did.
func (g *Group) mkdirs() (made []*hierarchy, err error) {
	for _, h := range g.root.hierarchies() {
		if err := h.tools.mkdir(g.leaf, 0o755); err != nil {
			return made, err
		}
		made = append(made, h)
	}
	return made, nil
}

func (g *Group) openFiles() (err error) {
	if g.dir, err = g.root.v2.tools.sub(g.leaf); err != nil {
		return err
	}
	if g.kill, err = g.dir.openFile("cgroup.kill", unix.O_WRONLY); err != nil {
		return err
	}
	if g.events, err = g.dir.openFile("cgroup.events", unix.O_RDONLY); err != nil {
		return err
	}
	if err = g.watchOOM(); err != nil {
		return err
	}
	return g.watchPids()
}

func (g *Group) undo(made []*hierarchy) error {
	g.closeFiles()
	var errs []error
	for _, h := range made {
		errs = append(errs, rmdirRetry(h.tools, g.leaf))
	}
	return errors.Join(errs...)
}

// closeFiles also lets waiters go: they find the group removed.
func (g *Group) closeFiles() {
	g.stopOOM()
	g.pids.close(g.root.events)
	g.waitMu.Lock()
	defer g.waitMu.Unlock()
	g.root.events.forget(g.eventsID)
	if g.emptied != nil {
		close(g.emptied)
		g.emptied = nil
	}
	closeFd(&g.kill)
	closeFd(&g.events)
	g.again.close()
	g.dir.close()
}

func closeFd(fd *int) {
	if *fd >= 0 {
		_ = unix.Close(*fd)
		*fd = -1
	}
}

// use runs f with all descriptors kept open, or fails with ErrRemoved.
func (g *Group) use(f func() error) error {
	g.root.mu.RLock()
	defer g.root.mu.RUnlock()
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.removed || g.root.closed {
		return ErrRemoved
	}
	return f()
}

// tryUse is use for the watcher's goroutine: it must not wait for Remove or
// Close, which wait for it, and has nothing to do once they have begun.
func (g *Group) tryUse(f func()) {
	if !g.root.mu.TryRLock() {
		return
	}
	defer g.root.mu.RUnlock()
	if !g.mu.TryRLock() {
		return
	}
	defer g.mu.RUnlock()
	if !g.removed && !g.root.closed {
		f()
	}
}

// Path returns the group's directory in cgroup2, for people: a mount may hide it.
// It stays valid after Remove.
func (g *Group) Path() string { return g.root.path + "/" + g.leaf }
