package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/budget"
)

// reader turns nodes into settings by the table of keys.
type reader struct {
	machine Machine
	report  *report
	asked   map[string]bool // variables that the file names
}

// variableOf looks up a variable that the file names.
func (r *reader) variableOf(name string) (value string, set bool) {
	if r.asked != nil {
		r.asked[name] = true
	}
	return r.machine.lookup(name)
}

// group is what was read of a mapping: the settings in it and below it, but for
// those of groups below it, which keep to themselves.
type group struct {
	name string
	node *node // the mapping
	at   *node // its name
	set  layer
	// named lists the names that the author chose, in order, by the path of the
	// mapping that they stand in: those of params.
	named  map[string][]*node
	groups map[string][]*group
}

func newGroup(name string, at, n *node) *group {
	return &group{name: name, at: at, node: n, set: layer{}, named: map[string][]*node{}, groups: map[string][]*group{}}
}

// refuse reports what is wrong with a node: the node's text, then the phrase.
func (r *reader) refuse(n *node, wrong string) {
	if wrong != reported {
		r.report.add(n.problem(n.shown() + " " + wrong))
	}
}

// complain reports a problem at a node in a sentence of its own.
func (r *reader) complain(n *node, format string, args ...any) {
	r.report.add(n.problem(fmt.Sprintf(format, args...)))
}

// reported stands for a phrase where the problem has been reported already.
const reported = "\x00"

// take reads a value by its kind, and reports what is wrong with it.
func (r *reader) take(k *kind, n *node) (data any, ok bool) {
	data, wrong := k.read(r, n)
	switch {
	case wrong == "":
		return data, true
	case k == variableKind: // which may hold a secret
		r.complain(n, "the value %s", wrong)
	default:
		r.refuse(n, wrong)
	}
	return nil, false
}

// mapping reads the members of n by keys into g, under the path prefix.
func (r *reader) mapping(keys []*key, n *node, g *group, prefix string) {
	if n.shape == nothing {
		return
	}
	if n.shape != mapping {
		r.refuse(n, "is not a mapping: write keys and values, of "+strings.Join(namesOf(keys), ", "))
		return
	}
	seen := map[string]*node{}
	for _, e := range n.entries {
		k := find(keys, e.key.value)
		if k == nil {
			r.unknown(keys, e)
			continue
		}
		if first := seen[k.name]; first != nil {
			r.twice(e.key, first)
			continue
		}
		seen[k.name] = e.key
		r.member(k, e, g, prefix+k.name)
	}
}

func (r *reader) unknown(keys []*key, e entry) {
	name := e.key.value
	near, places := find(keys, Nearest(name, namesOf(keys))), mappingsWith(name)
	advice := suggestion(name, namesOf(keys))
	switch {
	case near != nil && (len(places) == 0 || near.kind != nil || e.value.shape == mapping || e.value.shape == nothing):
	case e.value.hasOnly(keys):
		advice = "write what is in it one level higher, without it"
	case find(timeoutKeys, name) != nil:
		advice = fmt.Sprintf("for all tools it is timeouts.%s.%s, for some it belongs in tools.TOOL or classes.CLASS", budget.ToolCall, profileName(name))
	case len(places) > 0:
		advice = "it belongs in " + listed(places, "or")
	}
	r.complain(e.key, "unknown key %s: %s", quoted(name), advice)
}

// hasOnly says whether n is a mapping that has some of the keys and no other.
func (n *node) hasOnly(keys []*key) bool {
	return len(n.entries) > 0 && !slices.ContainsFunc(n.entries, func(e entry) bool { return find(keys, e.key.value) == nil })
}

// mappingsWith lists the mappings that have a key of this name.
func mappingsWith(name string) []string {
	var places []string
	walk(rootKeys, "", func(path string, k *key) {
		if parent := strings.TrimSuffix(path, "."+k.name); parent != path && (k.name == name || k.systemd == name) {
			places = append(places, parent)
		}
	})
	slices.SortStableFunc(places, func(a, b string) int { return len(a) - len(b) })
	return places[:min(len(places), 3)]
}

// distinct are the entries of a mapping but those whose key stood before, which are refused.
func (r *reader) distinct(n *node) (entries []entry, repeated bool) {
	seen := map[string]*node{}
	for _, e := range n.entries {
		if first := seen[e.key.value]; first != nil {
			r.twice(e.key, first)
			repeated = true
			continue
		}
		seen[e.key.value] = e.key
		entries = append(entries, e)
	}
	return entries, repeated
}

func (r *reader) twice(n, first *node) {
	if n.value == first.value {
		r.complain(n, "key %s stands twice, first in line %d: take one out", quoted(n.value), first.at.Line)
		return
	}
	r.complain(n, "%s and %s of line %d are the same limit: take one out", quoted(n.value), quoted(first.value), first.at.Line)
}

// member reads what stands behind one key.
func (r *reader) member(k *key, e entry, g *group, path string) {
	switch {
	case k.names != nil:
		r.members(k, r.asMapping(k, e.value), g, path)
	case k.keys != nil && (k.kind == nil || e.value.shape == mapping):
		r.mapping(k.keys, e.value, g, path+".")
	default:
		r.value(k, e, g, path, "")
	}
}

// value reads one setting.
func (r *reader) value(k *key, e entry, g *group, path, name string) {
	n := e.value
	if n.shape == nothing && k.kind != variableKind {
		if k.kind.schema.Type != "array" {
			r.complain(n, "%s has no value: give %s, or leave it out", quoted(e.key.value), k.kind.name)
		}
		return
	}
	if n.shape == nothing { // a variable that is passed on, for which its kind needs the name
		named := *n
		named.value = e.key.value
		n = &named
	}
	data, ok := r.take(k.kind, n)
	if !ok {
		return
	}
	s := setting{key: k, path: path, name: name, data: data, node: n, text: n.flow()}
	s.source = Source{Layer: n.file.layer, Position: n.at}
	if k.kind.write != nil {
		s.text = k.kind.write(data)
	}
	g.set[path] = s
}

// members reads a mapping whose keys the author chose.
func (r *reader) members(k *key, n *node, g *group, path string) {
	if n.shape == nothing {
		return
	}
	if n.shape != mapping {
		r.refuse(n, "is not a mapping: write "+k.names.word+": value")
		return
	}
	most := maxItems
	if k.groups {
		most = maxGroups
	}
	if len(n.entries) > most {
		r.complain(n, "there are more than %d names here: give fewer", most)
		return
	}
	entries, _ := r.distinct(n)
	for _, e := range entries {
		if wrong := k.names.wrong(e.key.value); wrong != "" {
			r.refuse(e.key, wrong)
			continue
		}
		g.named[path] = append(g.named[path], e.key)
		r.named(k, e, g, path)
	}
}

// maxGroups bounds tools and classes.
const maxGroups = 1024

func (r *reader) named(k *key, e entry, g *group, path string) {
	name := e.key.value
	here := path + "." + name
	e.value = k.longForm(e.value)
	switch {
	case k.groups:
		child := newGroup(name, e.key, e.value)
		r.mapping(k.keys, e.value, child, "")
		g.groups[path] = append(g.groups[path], child)
	case k.keys != nil && (k.kind == nil || e.value.shape == mapping):
		one := newGroup(name, e.key, e.value)
		r.mapping(k.keys, e.value, one, here+".")
		for _, s := range one.set {
			s.name = name
			g.set[s.path] = s
		}
	default:
		r.value(k, e, g, here, name)
	}
}

// longForm takes a bare value for the mapping that it is short for.
func (k *key) longForm(n *node) *node {
	if k.short == "" || n.shape != str && n.shape != number {
		return n
	}
	name := &node{shape: str, value: k.short, file: n.file, at: n.at, path: below(n.path, k.short)}
	return &node{shape: mapping, file: n.file, at: n.at, path: n.path, entries: []entry{{name, n}}}
}

// wrong says what is wrong with a name.
func (n *names) wrong(name string) string {
	if n.known != nil && !slices.Contains(n.known, name) {
		return "is not known: " + suggestion(name, n.known)
	}
	if n.check == nil {
		return ""
	}
	return n.check(name)
}

// asMapping takes the other form of a mapping of variables, a list of K=V and
// K, for what it means.
func (r *reader) asMapping(k *key, n *node) *node {
	if k.kind != variableKind || n.shape != list {
		return n
	}
	m := &node{shape: mapping, file: n.file, at: n.at, path: n.path}
	for _, item := range n.items {
		if item.shape != str {
			r.refuse(item, "is not a variable: write NAME=value, or NAME to pass the host's own on")
			continue
		}
		name, value, given := strings.Cut(item.value, "=")
		key := &node{shape: str, value: name, file: n.file, at: item.at, path: below(n.path, name)}
		v := &node{shape: nothing, file: n.file, at: item.at, path: key.path}
		if given {
			v.shape, v.value = str, value
		}
		m.entries = append(m.entries, entry{key, v})
	}
	return m
}
