package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Layer says in which of the operator's places a value stands, lowest first.
type Layer string

const (
	// LayerBuiltIn is toolhost's own default.
	LayerBuiltIn Layer = "built-in"
	// LayerFile is what the file says for all tools, its includes among it.
	LayerFile Layer = "file"
	// LayerClass is a class of tools.
	LayerClass Layer = "class"
	// LayerTool is a tool's own entry.
	LayerTool Layer = "tool"
	// LayerEnvironment is a TOOLHOST_* variable.
	LayerEnvironment Layer = "environment"
	// LayerFlag is a flag of the command line.
	LayerFlag Layer = "flag"
)

// Source is where a value comes from.
type Source struct {
	Layer Layer
	// Name is that of the class, variable or flag; empty for other layers.
	Name string
	// Position is zero for built-in values; File is the name of a variable or
	// flag.
	Position
}

// String is for people: "toolhost.yaml:12", "class heavy, toolhost.yaml:9",
// "TOOLHOST_MEMORY", "--memory", "built-in".
func (s Source) String() string {
	switch s.Layer {
	case LayerBuiltIn, "":
		return string(LayerBuiltIn)
	case LayerClass:
		return "class " + s.Name + ", " + s.Position.String()
	}
	return s.Position.String()
}

// pool names the setting where it may stand beside others like it on one line.
func (s Source) pool() string {
	if s.Layer == LayerTool {
		return fmt.Sprintf("%s:%d", s.Position, s.Column)
	}
	return s.String()
}

// Value is one setting as it is in force, for people to read.
type Value struct {
	// Path is the key from the root of the file: "limits.memory",
	// "tools.search.timeout".
	Path string
	// Text is the value as toolhost.yaml spells it. Values of variables whose
	// names speak of secrets are hidden.
	Text string
	// Source says where it stands.
	Source Source
}

// setting is a value that was read, under its key.
type setting struct {
	key *key
	// path leads to it from the root or from the tool: "limits.memory",
	// "env.HOME". name is the part of it that the author chose: "HOME".
	path, name string
	data       any
	text       string // as YAML
	node       *node  // nil for built-in values
	source     Source
}

// layer holds settings by their path.
type layer map[string]setting

// over puts upper on top of l.
func (l layer) over(upper layer) { maps.Copy(l, upper) }

// named gives the settings of l another source.
func (l layer) named(kind Layer, name string) layer {
	for path, s := range l {
		s.source.Layer, s.source.Name = kind, name
		l[path] = s
	}
	return l
}

// ordered lists the settings of a layer that was read by keys, in their order.
func (l layer) ordered(keys []*key) []setting {
	return slices.SortedFunc(maps.Values(l), func(a, b setting) int { return compareSettings(keys, a, b, a.path, b.path) })
}

// compareSettings orders rows as the table does. Names are ordered by the
// alphabet, since they may come from several layers; but those of arguments
// stand in one place and keep their order.
func compareSettings(keys []*key, a, b setting, pathA, pathB string) int {
	rowA, restA, _ := strings.Cut(pathA, ".")
	rowB, restB, _ := strings.Cut(pathB, ".")
	if rowA != rowB {
		row := func(name string) int { return slices.Index(keys, find(keys, name)) }
		return row(rowA) - row(rowB)
	}
	k := find(keys, rowA)
	if k == nil || restA == "" || restB == "" {
		return strings.Compare(restA, restB)
	}
	if k.names != nil {
		nameA, nextA, _ := strings.Cut(restA, ".")
		nameB, nextB, _ := strings.Cut(restB, ".")
		switch {
		case nameA == nameB:
		case k.only == TypeCommand:
			return a.source.compare(b.source.Position)
		default:
			return strings.Compare(nameA, nameB)
		}
		restA, restB = nextA, nextB
	}
	return compareSettings(k.keys, a, b, restA, restB)
}

// compare orders places in one file.
func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}
