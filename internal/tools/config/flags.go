package config

import (
	"slices"

	"github.com/toolhost/toolhost/sandbox"
)

// outside reads one setting that stands in no file.
func (b *builder) outside(k *key, path, name string, values []string, l Layer, g *group) {
	f := &file{name: name, dir: b.machine.Dir, layer: l}
	b.report.files = append(b.report.files, name)
	e := entry{f.scalar(k.name), k.said(f, values)}
	if k.kind == variableKind {
		b.variables(k, e.value, g)
	} else {
		b.value(k, e, g, path, "")
	}
	for path, s := range g.set {
		if s.source.File == name {
			s.source.Name = name
			g.set[path] = s
		}
	}
}

// said is a node of what a variable or flag says: a list, where the key takes one.
func (k *key) said(f *file, values []string) *node {
	n := f.scalar(values[len(values)-1])
	if k.kind == boolKind && (n.value == "true" || n.value == "false") {
		n.shape = boolean
	}
	whole := len(values) == 1 && (n.value == sandbox.NetworkNone || n.value == sandbox.NetworkHost)
	if k.kind.schema.Type != "array" && k.kind != variableKind && (k.name != networkKey.name || whole) {
		return n
	}
	n.shape = list
	for _, value := range values {
		n.items = append(n.items, f.scalar(value))
	}
	return n
}

// variables reads NAME=value and NAME. Of names that are not for tools to be given, only
// what cannot be a name is wrong here: the others don't reach them.
func (r *reader) variables(k *key, n *node, g *group) {
	for _, e := range r.asMapping(k, n).entries {
		if name := e.key.value; variableForm().MatchString(name) {
			r.value(k, e, g, k.name+"."+name, name)
		} else {
			r.refuse(n.file.scalar(name), WrongVariable(name))
		}
	}
}

// flags reads what the command line says.
func (b *builder) flags(flags []Flag) {
	g, host := newGroup("", nil, nil), newGroup("", nil, nil)
	for _, flag := range flags {
		if len(flag.Values) == 0 {
			continue
		}
		if k := find(toolKeys, flag.Key); k != nil && k.kind != nil {
			b.outside(k, k.name, flag.Name, flag.Values, LayerFlag, g)
		} else if k := at(rootKeys, flag.Key); k != nil && k.kind != nil {
			b.outside(k, flag.Key, flag.Name, flag.Values, LayerFlag, host)
		} else {
			b.report.add(Problem{Position: Position{File: flag.Name}, Message: "bug: there is no key " + quoted(flag.Key)})
		}
	}
	b.given = g.set
	b.root.set.over(host.set)
}

// overrule puts the flags on top of a tool that is checked. They are meant for what is
// called: what they would make of other tools is not wrong.
func (b *builder) overrule(t *Tool) {
	for path, s := range b.given {
		if below, ok := t.settings[path]; ok && s.key.kind.schema.Type == "array" {
			s.text = below.text + " and " + s.text
		}
		t.settings[path] = s
	}
	apply(t, toolKeys, b.given)
	if b.given["tier"].data == sandbox.TierNone {
		t.Sandbox, t.Data = sandbox.Policy{Tier: sandbox.TierNone}, false
	}
	t.acceptShared()
	for name, one := range t.MCP.Tools {
		b.overrule(&one)
		t.MCP.Tools[name] = one
	}
}

// acceptShared accepts a call's use of the caller's own rights where paths are granted:
// those who grant them by hand want that.
func (t *Tool) acceptShared() {
	if len(t.Sandbox.Read)+len(t.Sandbox.Write) > 0 && !slices.Contains(t.Sandbox.Allow, sandbox.SharedUID) {
		t.Sandbox.Allow = append(t.Sandbox.Allow, sandbox.SharedUID)
	}
}
