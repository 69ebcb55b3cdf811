package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/lookup"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// Own lists the host program's own files and folders, which grants do not include
// under any path. Calls cannot move them, or folders above them.
type Own struct {
	// Hidden files and folders cannot be granted. Below a granted folder the call
	// sees an empty one instead. Missing ones are ignored.
	Hidden []string
	// Fixed files and folders are readable, and read-only below a granted folder; if
	// they were hidden they would look deleted. A call must not create a missing one:
	// a grant to write to a folder where it could be is refused.
	Fixed []string
	// Made are folders that are fixed, too. Before a call that could create a missing
	// one, it is created with access for the host's user only.
	Made []string
	// Data is a folder below a hidden one. Folders in it may be workspaces.
	Data string
}

// OwnError means that a granted path is, or lies in, one of the paths in Own.
type OwnError struct {
	// Grant is the granted path, Own the path that it shows.
	Grant, Own string
}

func (e *OwnError) Error() string {
	return fmt.Sprintf("cannot grant %s: it is %s, or lies in it, which is toolhost's own; grant what is needed beside it", e.Grant, e.Own)
}

// Guard keeps the host's Own files out of policies. It holds the files open that it has
// seen, so that it finds them after they are moved. It is safe for concurrent use.
type Guard struct {
	mounts mountWatch

	mu     sync.Mutex
	seen   map[string]*opened
	judged []*judged // the newest last
}

// mask is a path of a call's that is covered.
type mask struct {
	grant, target string // the grant's target, and where in it
	device, inode uint64
	born          unix.StatxTimestamp // of the file system's own, for inode numbers are given anew
	kind          maskKind
}

type maskKind int

const (
	hidden maskKind = iota // something empty is shown
	fixed                  // shown, but read-only
	pinned                 // shown as it is: a mount point cannot be moved
)

// Apply returns an error if the policy grants one of own's paths, and otherwise masks
// those below its grants. It replaces an earlier Apply.
func (g *Guard) Apply(r *Resolved, own Own) error {
	r.masks = nil
	if r.held == nil {
		return nil
	}
	r.held.own = nil
	if masks, ok := g.masksOf(r, own); ok {
		r.masks = masks
		return nil
	}
	k := keeper{resolved: r, own: own}
	for _, path := range own.Made {
		if err := k.makeMissing(path); err != nil {
			return err
		}
	}
	if err := k.keepAll(g); err != nil {
		return err
	}
	r.masks = outermost(k.masks)
	g.rememberOwn(r, own, distinct(k.marks))
	return nil
}

// Judge is like Apply, for a policy that is only checked: it creates nothing, and folders
// in own.Made may be missing.
func (g *Guard) Judge(r *Resolved, own Own) error {
	r.masks = nil
	if r.held == nil {
		return nil
	}
	r.held.own = nil
	k := keeper{resolved: r, own: own, judges: true}
	err := k.keepAll(g)
	r.masks = outermost(k.masks)
	return err
}

// marksOf are those of something own: where the path leads to, and where else is what
// was there first.
func marksOf(path string, found []*opened) (marks []mark) {
	named := mark{path: path, absent: true}
	for _, o := range found {
		if o.path != path {
			marks = append(marks, marked(o.path, o))
		}
		named = marked(path, o)
	}
	return append(marks, named)
}

// outermost leaves out what another mask does already, and has those above before
// those below.
func outermost(masks []mask) (kept []mask) {
	shorter := func(a, b mask) int { return cmp.Compare(len(a.target), len(b.target)) }
	slices.SortStableFunc(masks, func(a, b mask) int { return cmp.Or(cmp.Compare(a.kind, b.kind), shorter(a, b)) })
	for _, m := range masks {
		covered := func(by mask) bool {
			return by.grant == m.grant && (by.target == m.target || by.kind != pinned && Within(m.target, by.target))
		}
		if !slices.ContainsFunc(kept, covered) {
			kept = append(kept, m)
		}
	}
	slices.SortStableFunc(kept, shorter)
	return kept
}

// find is what is at the path, and what was there when it was first looked at.
func (g *Guard) find(path string) (list []*opened, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, err := openOwn(path)
	if err != nil {
		return nil, err
	}
	first := g.seen[path]
	if first != nil && first.look() == nil {
		list = append(list, first.copy())
	} else if now != nil {
		if first != nil {
			_ = first.file.Close()
		}
		if g.seen == nil {
			g.seen = map[string]*opened{}
		}
		g.seen[path] = now
		return []*opened{now.copy()}, nil
	}
	if now != nil {
		_ = now.file.Close()
		list = append(list, now)
	}
	return list, nil
}

// Close closes the files that the Guard holds.
func (g *Guard) Close() {
	g.mounts.close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range g.seen {
		_ = o.file.Close()
	}
	g.seen = nil
}

// openOwn opens a path that the host's program uses itself, as it would. It is nil
// for what is not there, and for what this user cannot get at: no call has more rights.
func openOwn(path string) (*opened, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := &opened{file: os.NewFile(uintptr(fd), path)}
	if err := o.look(); err != nil {
		_ = o.file.Close()
		return nil, err
	}
	return o, nil
}

func (o *opened) copy() *opened { c := *o; return &c }

func (r *Resolved) refuseOwn(g grant, o *opened, name string, views []string) error {
	if at := r.held.get(g.source); at != nil && at.is(&o.stat) {
		return &OwnError{g.named(), name}
	}
	for _, view := range views {
		if Within(g.source, view) {
			return &OwnError{g.named(), name}
		}
	}
	return nil
}

// lends are the grants, and the folder that is the workspace as one of them.
func (r *Resolved) lends() []grant {
	if r.workspace == "" {
		return r.grants
	}
	return append(slices.Clip(r.grants), grant{source: r.workspace, target: Workspace, write: true})
}

// named is the path that the policy has for it.
func (g grant) named() string {
	if g.target == Workspace {
		return g.source
	}
	return g.target
}

// lent says whether the workspace is one of those that the host keeps.
func (r *Resolved) lent(data string) bool {
	return data != "" && filepath.Dir(r.workspace) == lookup.Real(data)
}

// maskIn covers toolhost's own files below a grant, before anything else is
// mounted there.
func (p *Plan) maskIn(r Resolved, g placed) {
	for _, m := range r.masks {
		if m.grant == g.target {
			kind := int64(wire.MountMask)
			if m.kind != hidden {
				kind = wire.MountFixed
			}
			p.mount(wire.Mount{Kind: kind, Target: g.at + strings.TrimPrefix(m.target, g.target), OnDevice: int64(m.device), OnInode: int64(m.inode), Write: m.kind == pinned, NoExec: m.kind == hidden})
		}
	}
}
