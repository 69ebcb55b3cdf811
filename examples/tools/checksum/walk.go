package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// walk lists the regular files at or below root, in the order of their whole
// paths.
type walk struct {
	root    string // a folder
	single  string // the one file in it, if a file was named
	skipped int64  // links and special files; complete once files has returned
}

func newWalk(named string) (*walk, error) {
	info, err := os.Stat(named)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read: %w", err)
	case info.IsDir():
		return &walk{root: named}, nil
	case info.Mode().IsRegular():
		return &walk{root: filepath.Dir(named), single: filepath.Base(named)}, nil
	}
	return nil, fmt.Errorf("cannot read %s: it is neither a file nor a folder", named)
}

// files calls visit for each file, with its slash path below root, or with the
// error of a folder that could not be read, until that returns false.
func (w *walk) files(visit func(name string, err error) bool) {
	if w.single != "" {
		visit(w.single, nil)
		return
	}
	w.folder(".", visit)
}

func (w *walk) folder(rel string, visit func(string, error) bool) bool {
	entries, err := os.ReadDir(filepath.Join(w.root, rel)) // also with an error, what could be read
	if err != nil && !visit(rel, err) {
		return false
	}
	// As sort does with whole paths: a folder's place is that of its name with
	// the slash, so that a.txt comes before a/b.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortKey(a), sortKey(b)) })
	for _, entry := range entries {
		if !w.entry(path.Join(rel, entry.Name()), entry, visit) {
			return false
		}
	}
	return true
}

func (w *walk) entry(rel string, entry fs.DirEntry, visit func(string, error) bool) bool {
	switch {
	case entry.IsDir():
		return w.folder(rel, visit)
	case entry.Type().IsRegular():
		return visit(rel, nil)
	}
	w.skipped++
	return true
}

func sortKey(entry fs.DirEntry) string {
	if entry.IsDir() {
		return entry.Name() + "/"
	}
	return entry.Name()
}
