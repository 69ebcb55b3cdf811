package config

import (
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/internal/text"
)

// shape is what a node is.
type shape int

const (
	nothing shape = iota // null, or no value at all
	str                  // a string, quoted or not
	number
	boolean
	list
	mapping
)

var shapeNames = [...]string{"nothing", "text", "a number", "true or false", "a list", "a mapping"}

// node is a value of a file with its place. The tree is bounded by the reading
// of YAML (see yaml.go) and never changed.
type node struct {
	shape shape
	// value is a scalar's: a text's own characters, others as they are written; of a
	// variable that is passed on its name.
	value   string
	items   []*node
	entries []entry

	file *file
	at   Position
	path string
}

// entry is one member of a mapping.
type entry struct{ key, value *node }

// file is one that nodes come from, or a variable or flag, which has no lines.
type file struct {
	name  string // as messages show it
	path  string // absolute; empty for a variable or flag
	dir   string // that relative paths start from
	lines []string
	layer Layer
}

func (f *file) line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	return f.lines[n-1]
}

// scalar makes the node of a variable or flag.
func (f *file) scalar(value string) *node {
	return &node{shape: str, value: value, file: f, at: Position{File: f.name}}
}

// problem is one about this node.
func (n *node) problem(message string) Problem {
	return Problem{Position: n.at, Path: n.path, Message: message, excerpt: n.file.line(n.at.Line)}
}

// shown is the node in a message: a scalar's text, else what it is.
func (n *node) shown() string {
	switch n.shape {
	case str, number, boolean:
		return quoted(n.value)
	}
	return shapeNames[n.shape]
}

// child finds a member of a mapping, or nil.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	for _, e := range n.entries {
		if e.key.value == name {
			return e.value
		}
	}
	return nil
}

// flow writes the node as YAML on one line.
func (n *node) flow() string {
	var parts []string
	switch n.shape {
	case str:
		return text.YAML(n.value)
	case list:
		for _, item := range n.items {
			parts = append(parts, item.flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case mapping:
		for _, e := range n.entries {
			parts = append(parts, e.key.flow()+": "+e.value.flow())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case nothing:
		return "null"
	}
	return n.value
}

// below is the path of a member.
func below(path, name string) string {
	if !plainName().MatchString(name) {
		name = quoted(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

var plainName = lazy.Regexp(`^[A-Za-z0-9_-]{1,64}$`)
