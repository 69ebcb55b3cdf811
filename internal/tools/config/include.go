package config

import (
	"fmt"
	"hash"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
)

// Bounds of includes.
const (
	maxIncludeDepth = 8
	maxFiles        = 64
)

// loader reads a file and what it includes into one group.
type loader struct {
	reader
	root  *group
	files []*file
	sum   hash.Hash
	// sources are what the patterns of includes depend on.
	sources []string
}

// load reads a file. from is the node that includes it, nil for the first.
func (l *loader) load(f *file, from *node, above []string) {
	if !l.admit(f, from, above) {
		return
	}
	l.files = append(l.files, f)
	l.report.files = append(l.report.files, f.name)
	raw, info, err := l.machine.read(f.path, maxFileBytes)
	if err != nil {
		remedy := "correct its permissions, or name another"
		if notThere(err) {
			remedy = "make it, or correct the path"
		}
		l.about(f, from, fmt.Sprintf("cannot be read: %v: %s", err, remedy))
		return
	}
	fmt.Fprintf(l.sum, "%d %s %d %s", len(f.path), f.path, len(raw), raw)
	if wrong := l.machine.trust(f.path, info); wrong != "" {
		l.about(f, from, wrong)
		return
	}
	n := parseYAML(f, raw, l.report)
	if n == nil {
		return
	}
	g := newGroup("", nil, n)
	l.mapping(rootKeys, n, g, "")
	l.merge(g)
	if s, ok := g.set[includeKey]; ok {
		l.include(f, s, append(slices.Clone(above), f.path))
	}
}

// admit refuses cycles, repetitions and too many files.
func (l *loader) admit(f *file, from *node, above []string) bool {
	twice := slices.ContainsFunc(l.files, func(o *file) bool { return o.path == f.path })
	switch {
	case slices.Contains(above, f.path):
		l.about(f, from, "includes itself: take one of the includes out")
	case twice:
		l.about(f, from, "is included already: take one of the includes out")
	case len(above) > maxIncludeDepth:
		l.about(f, from, fmt.Sprintf("is included over more than %d files: include it nearer to the first", maxIncludeDepth))
	case len(l.files) >= maxFiles:
		l.about(f, from, fmt.Sprintf("is one more than the %d files that are read: put some together", maxFiles))
	default:
		return true
	}
	return false
}

// about reports a problem with a file as a whole, where it is included.
func (l *loader) about(f *file, from *node, wrong string) {
	if from == nil {
		l.report.add(Problem{Position: Position{File: f.name}, Message: "the file " + wrong})
		return
	}
	l.complain(from, "the file %s %s", quoted(f.name), wrong)
}

// include reads the files that f names, and those that patterns find, sorted.
func (l *loader) include(f *file, s setting, above []string) {
	for _, item := range s.data.([]*node) {
		read, pattern := l.path, isPattern(item.value)
		if pattern {
			read = l.pattern
		}
		path, wrong := read(item)
		if wrong != "" {
			l.refuse(item, wrong)
			continue
		}
		if !pattern {
			l.load(l.below(f, path), item, above)
			continue
		}
		for _, found := range l.glob(item, path) {
			l.load(l.below(f, found), item, above)
		}
	}
}

// literally writes a text as a pattern that finds it alone; literals finds what it has put
// for a character.
var (
	literally = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
	literals  = lazy.Regexp(`\\(.)`)
)

// pattern is the path of a pattern. The names of folders that the file itself does not write,
// such as its own, stand for themselves.
func (l *loader) pattern(n *node) (path, wrong string) {
	r, own, file := l.reader, *n, *n.file
	own.file, file.dir = &file, literally.Replace(file.dir)
	r.machine.Home, r.machine.Environ = literally.Replace(r.machine.Home), nil
	for _, v := range l.machine.Environ {
		r.machine.Environ = append(r.machine.Environ, literally.Replace(v))
	}
	return r.path(&own)
}

// glob finds plain files. A pattern may find none: conf.d may be empty.
func (l *loader) glob(n *node, pattern string) []string {
	found, err := fs.Glob(l.machine.Files, inFiles(pattern))
	if err != nil {
		l.refuse(n, "is not a pattern: write one such as conf.d/*.yaml")
		return nil
	}
	l.searched(pattern)
	var paths []string
	for _, name := range found {
		info, err := l.machine.stat("/" + name)
		if err == nil && !info.IsDir() {
			paths = append(paths, "/"+name)
		} else if err != nil { // a link to nothing, yet
			l.sources = append(l.sources, "/"+name)
		}
	}
	slices.Sort(paths)
	return paths
}

// searched notes the folder in which a pattern begins, and those that links in it lead
// to, where it goes on.
func (l *loader) searched(pattern string) {
	folder := filepath.Dir(pattern)
	for ; isPattern(literals().ReplaceAllString(folder, "")); folder = filepath.Dir(folder) {
		found, _ := fs.Glob(l.machine.Files, inFiles(folder)) // the whole pattern was one
		for _, name := range found {
			if info, err := fs.Lstat(l.machine.Files, name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				l.sources = append(l.sources, "/"+name)
			}
		}
	}
	l.sources = append(l.sources, literals().ReplaceAllString(folder, "$1"))
}

func isPattern(path string) bool { return strings.ContainsAny(path, "*?[") }

// below makes the file of an include; its name begins as that of its includer.
func (l *loader) below(f *file, path string) *file {
	name := path
	if relative, err := filepath.Rel(f.dir, path); err == nil && filepath.IsLocal(relative) {
		name = filepath.Join(filepath.Dir(f.name), relative)
	}
	return newFile(name, path)
}

func newFile(name, path string) *file {
	return &file{name: name, path: path, dir: filepath.Dir(path), layer: LayerFile}
}

// merge adds what one file says. Files only add to each other.
func (l *loader) merge(g *group) {
	for _, s := range g.set.ordered(rootKeys) {
		first, twice := l.root.set[s.path]
		if twice && s.path != includeKey {
			l.complain(s.node, "%s is set already in %s: set it in one file only", s.path, first.source.Position)
			continue
		}
		l.root.set[s.path] = s
	}
	for path, names := range g.named {
		l.root.named[path] = append(l.root.named[path], names...)
	}
	for path, groups := range g.groups {
		for _, one := range groups {
			i := slices.IndexFunc(l.root.groups[path], func(o *group) bool { return o.name == one.name })
			if i >= 0 {
				l.complain(one.at, "%s stands already in %s: rename one of them", one.at.shown(), l.root.groups[path][i].at.at)
				continue
			}
			l.root.groups[path] = append(l.root.groups[path], one)
		}
	}
}
