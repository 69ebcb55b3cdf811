package main

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// walk lists the files to search below a path, in lexical order.
type walk struct {
	root    string // as the caller named it
	single  bool   // root is a file
	include string // glob; empty is all
}

// newWalk fails if there is nothing to search at root.
func newWalk(root, include string) (*walk, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("cannot search: %w", err)
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("cannot search %s: it is neither a file nor a folder", root)
	}
	return &walk{root: filepath.Clean(root), include: include, single: info.Mode().IsRegular()}, nil
}

// files yields the paths of the files, each beginning with root. A file that
// was named itself is searched even if a rule excludes it.
func (w *walk) files(complain func(error)) iter.Seq[string] {
	return func(yield func(string) bool) {
		if w.single {
			yield(w.root)
			return
		}
		v := visit{walk: w, complain: complain, yield: yield}
		var outer *rules
		v.below, outer = outerRules(w.root, complain)
		v.folder(".", outer)
	}
}

// visit is one pass over the tree.
type visit struct {
	*walk
	below    string // root's slash path from where the rules' paths begin
	complain func(error)
	yield    func(string) bool
}

// folder yields the files below the slash path rel; it is false once no more
// are wanted.
func (v *visit) folder(rel string, outer *rules) bool {
	here := filepath.Join(v.root, rel)
	entries, err := os.ReadDir(here) // also with an error, what could be read
	if err != nil {
		v.complain(err)
	}
	rules, err := outer.in(here, path.Join(v.below, rel))
	if err != nil {
		v.complain(err)
	}
	for _, entry := range entries {
		if !v.entry(path.Join(rel, entry.Name()), entry, rules) {
			return false
		}
	}
	return true
}

// entry follows no symbolic link: a link's target is found where it is, and
// links cannot make the walk run in circles.
func (v *visit) entry(rel string, entry fs.DirEntry, r *rules) bool {
	switch {
	case entry.Name() == ".git" || r.exclude(path.Join(v.below, rel), entry.IsDir()):
		return true
	case entry.IsDir():
		return v.folder(rel, r)
	case entry.Type().IsRegular() && v.included(rel):
		return v.yield(filepath.Join(v.root, rel))
	}
	return true
}

// included matches a glob without a slash against the name alone.
func (w *walk) included(rel string) bool {
	if w.include == "" {
		return true
	}
	if !strings.Contains(w.include, "/") {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(w.include, rel)
}
