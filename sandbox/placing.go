package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// placed is a grant, and the path at which it is mounted.
type placed struct {
	grant
	at string
}

// maxPlacing bounds the links that are followed to where a grant is mounted, as the
// kernel does.
const maxPlacing = 40

// place finds where grants are mounted, in the order of the mounts. That is the path by
// which they were named, but where the call itself sees a link on it, in the runtime or
// in another grant: nothing can be mounted on a link, so it is where that leads, if that
// is what was opened.
func (r Resolved) place(l layout) []placed {
	list := make([]placed, len(r.grants))
	for i, g := range r.grants {
		list[i] = placed{g, g.target}
	}
	for moved, n := true, 0; moved && n < maxPlacing; n++ {
		moved = false
		for i := range list {
			if g := &list[i]; g.source != g.target { // else there is no link
				moved = g.follow(l, list) || moved
			}
		}
	}
	for i := range list { // what links say now must not place it elsewhere: a tool may write them
		if g := &list[i]; g.at != g.source {
			g.at = g.target
		}
	}
	slices.SortStableFunc(list, func(a, b placed) int {
		if a.at == b.at && a.write != b.write && b.write { // which is then seen
			return -1
		}
		return strings.Compare(a.at, b.at)
	})
	return list
}

// follow goes on by the first link on the way that the call sees.
func (p *placed) follow(l layout, all []placed) bool {
	for end := 1; end <= len(p.at); end++ {
		if end < len(p.at) && p.at[end] != '/' {
			continue
		}
		link := p.at[:end]
		to := l.linkAt(link)
		if to == "" && p.seen(link, l, all) {
			to, _ = os.Readlink(link)
		}
		if to == "" {
			continue
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(link), to)
		}
		next := filepath.Join(to, p.at[end:])
		if checkReserved(next) != nil {
			return false
		}
		p.at = next
		return true
	}
	return false
}

// seen says whether path lies in what the call sees beside the grant.
func (p *placed) seen(path string, l layout, all []placed) bool {
	below := func(dir string) bool { return path != dir && Within(path, dir) }
	return slices.ContainsFunc(l.binds, below) ||
		slices.ContainsFunc(all, func(o placed) bool { return o.target != p.target && below(o.at) })
}

// linkAt is where the link of the sandbox's own root at path leads; empty if there is not one.
func (l layout) linkAt(path string) string {
	for _, link := range l.links {
		if link.path == path {
			return link.target
		}
	}
	return ""
}
