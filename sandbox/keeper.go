package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/sandbox/internal/lookup"
)

// keeper finds the masks that keep Own out of a policy's grants, and the marks that
// they depend on.
type keeper struct {
	resolved *Resolved
	own      Own
	masks    []mask
	marks    []mark
	judges   bool // no call is to run
	// missing are the fixed paths that a call could make, below writable.
	missing, writable []string
}

// keepAll masks all that is own. Of what is missing it tells at once.
func (k *keeper) keepAll(g *Guard) error {
	for _, path := range k.own.Hidden {
		if err := k.keepOut(g, path, hidden); err != nil {
			return err
		}
	}
	for _, path := range slices.Concat(k.own.Fixed, k.own.Made) {
		if err := k.keepOut(g, path, fixed); err != nil {
			return err
		}
	}
	if len(k.missing) > 0 {
		return k.missingError()
	}
	return nil
}

// makeMissing makes a folder that a call could make, unless root would do so in a
// folder of another user. One that cannot be made is refused like others.
func (k *keeper) makeMissing(path string) error {
	missing, err := k.wayTo(path)
	if err != nil || missing == "" {
		return err
	}
	var st unix.Stat_t
	if _, ok := k.writes(filepath.Dir(missing)); ok && unix.Stat(filepath.Dir(missing), &st) == nil && (os.Geteuid() != 0 || st.Uid == 0) {
		_ = lookup.MakeFolder(path, k.mode(path))
	}
	return nil
}

// mode is that of a folder which is made: all users look for root's configuration.
func (k *keeper) mode(path string) os.FileMode {
	if os.Geteuid() == 0 && !slices.Contains(k.own.Hidden, path) {
		return 0o755
	}
	return 0o700
}

func (k *keeper) missingError() error {
	var words []string
	for _, path := range k.missing {
		if !slices.Contains(k.own.Hidden, path) || slices.Contains(k.own.Made, path) {
			words = append(words, text.ShellWord(path))
		}
	}
	it, remedy := "it", "start toolhost without this grant once, which makes it" // a key
	if len(k.missing) > 1 {
		it = "them"
	}
	if len(words) > 0 {
		remedy = "make " + it + " first (folders: mkdir -p -m 700 " + strings.Join(words, " ") + ")"
	}
	return fmt.Errorf("cannot grant writing to %s: a call could make %s there, and toolhost would take %s for its own; %s, or grant what is needed beside it",
		strings.Join(k.writable, ", "), strings.Join(k.missing, ", "), it, remedy)
}

// keepOut masks one own thing in all grants, or refuses those that are it, or in which
// its path can be made to lead elsewhere.
func (k *keeper) keepOut(g *Guard, path string, kind maskKind) error {
	if kind == fixed && slices.Contains(k.own.Hidden, path) { // so that it is not made
		return k.checkWay(path, kind)
	}
	found, err := g.find(path)
	if err != nil {
		return fmt.Errorf("cannot keep %s out of the grants: %w", path, text.Cause(err))
	}
	k.marks = append(k.marks, marksOf(path, found)...)
	for _, o := range found {
		if err := k.cover(o, path, kind); err != nil {
			return err
		}
	}
	return k.checkWay(path, kind)
}

func (k *keeper) cover(o *opened, name string, kind maskKind) error {
	r := k.resolved
	views := r.held.mounts.views(o, true)
	for _, g := range r.lends() {
		if kind == fixed && !g.write {
			continue
		}
		if err := r.refuseOwn(g, o, name, views); err != nil && !(g.target == Workspace && r.lent(k.own.Data)) {
			return err
		}
		for _, view := range views {
			if !Within(view, g.source) {
				continue
			}
			k.masks = append(k.masks, newMask(g, o, view, kind))
			if err := k.pin(g, view); err != nil {
				return err
			}
		}
	}
	return nil
}

// newMask covers one view of something own below a grant: of itself, or of a part of
// it that is mounted there by itself.
func newMask(g grant, o *opened, view string, kind maskKind) mask {
	m := mask{
		grant: g.target, target: g.target + strings.TrimPrefix(view, strings.TrimSuffix(g.source, "/")),
		device: o.id.device, inode: o.id.inode, born: o.id.born, kind: kind,
	}
	var st unix.Stat_t
	if o.folder() && kind == hidden && view != o.path && unix.Lstat(view, &st) == nil {
		m.device, m.inode = uint64(st.Dev), st.Ino
	}
	return m
}

// pin keeps the folders between a grant that may be written and a view below it where
// they are: else they could be moved, and others made in their place.
func (k *keeper) pin(g grant, view string) error {
	if !g.write {
		return nil
	}
	for dir := filepath.Dir(view); dir != g.source && Within(dir, g.source); dir = filepath.Dir(dir) {
		o, err := openOwn(dir)
		if o == nil {
			return fmt.Errorf("cannot keep %s in its place: %w", dir, cmp.Or(text.Cause(err), errMoved))
		}
		_ = o.file.Close()
		k.masks = append(k.masks, newMask(g, o, dir, pinned))
		k.marks = append(k.marks, marked(dir, o))
	}
	return nil
}

// checkWay refuses grants in which a call could exchange a link on the way to something
// own, and notes those in which it could make something that must be fixed.
func (k *keeper) checkWay(path string, kind maskKind) error {
	missing, err := k.wayTo(path)
	if err != nil || missing == "" || kind != fixed || k.judges && slices.Contains(k.own.Made, path) {
		return err
	}
	if g, ok := k.writes(filepath.Dir(missing)); ok && !slices.Contains(k.missing, path) {
		k.missing = append(k.missing, path)
		if !slices.Contains(k.writable, g) {
			k.writable = append(k.writable, g)
		}
	}
	return nil
}

// wayTo is what is missing on the way to something own. A link on it must be out of
// reach.
func (k *keeper) wayTo(path string) (missing string, err error) {
	links, missing := lookup.Way(path)
	for _, link := range links {
		if g, ok := k.writes(filepath.Dir(link)); ok && !k.holds(link) {
			return "", fmt.Errorf("cannot grant writing to %s: %s in it is a link, by which toolhost finds its own %s; name what it leads to in place of the link, or grant what is needed beside it", g, link, path)
		}
	}
	return missing, nil
}

// holds says whether a link lies in a folder that no call can write to.
func (k *keeper) holds(link string) bool {
	return slices.ContainsFunc(slices.Concat(k.own.Hidden, k.own.Fixed, k.own.Made), func(path string) bool {
		real := lookup.Real(path)
		return real != link && Within(link, real)
	})
}

// writes finds a grant by which a folder, or what is below it, may be written.
func (k *keeper) writes(folder string) (target string, ok bool) {
	r := k.resolved
	if len(r.writable()) == 0 {
		return "", false
	}
	o, err := openOwn(folder)
	if o == nil || err != nil {
		return "", false
	}
	_ = o.file.Close()
	for _, view := range r.held.mounts.views(o, false) {
		for _, g := range r.lends() {
			if g.write && Within(view, g.source) {
				return g.named(), true
			}
		}
	}
	return "", false
}
