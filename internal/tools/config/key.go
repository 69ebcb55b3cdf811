package config

import (
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/lazy"
)

// key is one row of the table of keys. It has a kind if it holds a value, keys
// if it holds a mapping, or both if it may be written either way.
type key struct {
	name string
	// systemd is the same limit's name in systemd, taken in its place.
	systemd string
	// variable is the TOOLHOST_* variable that overrules the file.
	variable string
	kind     *kind
	keys     []*key
	// names says that the members of the mapping are named by the author; each
	// holds what kind and keys say.
	names *names
	// short is the one of keys that a bare value sets.
	short string
	// groups: each member is a group of its own, not a part of this one.
	groups bool

	// std is what holds if nobody says anything: a value, or in parentheses
	// what it depends on.
	std string
	// unset says that the rows below hold nothing by default, whatever they say.
	unset bool
	// doc is one line for docs and editors.
	doc string
	// only is the one type of tool that may have the key; empty is all.
	only Type
	// process: it belongs to a process, not to a single call of it.
	process bool
	// restart: a running host takes up a change only when it is started anew.
	restart bool

	// sets is what a setting changes, for each kind of target; see to. Rows
	// without it are read where they are needed.
	sets effect
	// ask puts a timeout into an ask of the layer that it stands in.
	ask func(*budget.Ask, time.Duration)
}

// effect puts a setting into a target of its type, and leaves others alone.
type effect func(target any, s setting)

func to[T any](set func(*T, setting)) effect {
	return func(target any, s setting) {
		if t, ok := target.(*T); ok {
			set(t, s)
		}
	}
}

// put sets an entry of a map, which it makes if it is nil.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// and is both; e may be nil.
func (e effect) and(next effect) effect {
	if e == nil {
		return next
	}
	return func(target any, s setting) { e(target, s); next(target, s) }
}

// field is a key whose value a target keeps as it was read.
func field[O, T any](k key, of func(*O) *T) *key {
	k.sets = func(target any, s setting) {
		if o, ok := target.(*O); ok {
			*of(o) = s.data.(T)
		}
	}
	return &k
}

// intField is the same for an int.
func intField[O any](k key, of func(*O) *int) *key {
	k.sets = func(target any, s setting) {
		if o, ok := target.(*O); ok {
			*of(o) = int(s.data.(int64))
		}
	}
	return &k
}

// apply puts the settings of a layer into a target, in the order of the table
// that it was read by.
func apply(target any, keys []*key, l layer) {
	for _, s := range l.ordered(keys) {
		if s.key.sets != nil {
			s.key.sets(target, s)
		}
	}
}

// names are the keys of a mapping that its author chooses.
type names struct {
	// word stands for them in docs: NAME.
	word string
	// pattern is their form, for editors.
	pattern string
	// check says what is wrong with one; empty if nothing is.
	check func(string) string
	// known are the only ones there are; nil is any.
	known []string
}

// namesLike are those of a form; wrong says of others what is wrong with them.
func namesLike(word, pattern, wrong string) *names {
	form := lazy.Regexp(pattern)
	return &names{word: word, pattern: pattern, check: func(name string) string {
		if form().MatchString(name) {
			return ""
		}
		return wrong
	}}
}

// find looks a key up by its name or by systemd's.
func find(keys []*key, name string) *key {
	i := slices.IndexFunc(keys, func(k *key) bool { return k.name == name || k.systemd != "" && k.systemd == name })
	if i < 0 {
		return nil
	}
	return keys[i]
}

func namesOf(keys []*key) []string {
	var list []string
	for _, k := range keys {
		list = append(list, k.name)
		if k.systemd != "" {
			list = append(list, k.systemd)
		}
	}
	return list
}

// at finds the key of a dotted path from keys on.
func at(keys []*key, path string) *key {
	first, rest, more := strings.Cut(path, ".")
	k := find(keys, first)
	if k == nil || !more {
		return k
	}
	return at(k.keys, rest)
}

// walk visits every row below keys with its path, in which names stand as their
// word: "tools.NAME.env.NAME".
func walk(keys []*key, path string, visit func(path string, k *key)) {
	for _, k := range keys {
		here := strings.TrimPrefix(path+"."+k.name, ".")
		visit(here, k)
		if k.names != nil {
			here += "." + k.names.word
		}
		walk(k.keys, here, visit)
	}
}

// suggestion is the end of a message about an unknown word: the nearest known
// one, if it is near, else all of them.
func suggestion(word string, known []string) string {
	if best := Nearest(word, known); best != "" {
		return "did you mean " + best + "?"
	}
	return "must be one of " + strings.Join(known, ", ")
}
