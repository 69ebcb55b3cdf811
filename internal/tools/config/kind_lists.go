package config

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/internal/text"
)

func listSchema(items *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: items}
}

func wordSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}}
}

func textSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }

// maxItems bounds every list.
const maxItems = 256

// listOf reads the items of a list by another kind, all of them, so that each
// problem is told at its own place.
func listOf(name string, item *kind) *kind {
	return &kind{name: name, schema: listSchema(item.schema), read: func(r *reader, n *node) (any, string) {
		if n.shape == nothing {
			return []string{}, ""
		}
		if n.shape != list {
			return nil, "is not a list: write [" + n.value + "]"
		}
		if len(n.items) > maxItems {
			return nil, "has more than 256 items: give fewer"
		}
		words := []string{}
		for _, i := range n.items {
			if data, ok := r.take(item, i); ok {
				words = append(words, data.(string))
			}
		}
		return words, ""
	}}
}

// Existence that a path is checked for.
const (
	pathAny  = iota // it need not exist
	pathSome        // something must be there
	pathFile
	pathFolder
	pathProgram
	pathPlugin // a program, or a pack
)

// pathKind is a path with ~ and ${VARIABLE}, from the folder of the file that
// names it.
func pathKind(name string, must int) *kind {
	return &kind{
		name: name, schema: textSchema(),
		read: func(r *reader, n *node) (any, string) {
			path, wrong := r.path(n)
			if wrong == "" {
				wrong = r.missing(path, must)
			}
			return path, wrong
		},
		write: writePath,
	}
}

// noState, in place of the state folder, keeps none.
const noState = "none"

// statePath is a folder, or none.
func statePath() *kind {
	folder := *pathKind("path, or none", pathAny)
	folder.read = func(r *reader, n *node) (any, string) {
		if n.shape == str && n.value == noState {
			return noState, ""
		}
		return r.path(n)
	}
	return &folder
}

// cgroupKind is a path in every cgroup hierarchy.
var cgroupKind = &kind{
	name: "path of a cgroup", schema: &jsonschema.Schema{Type: "string", Pattern: "^/"},
	read: func(_ *reader, n *node) (any, string) {
		switch {
		case n.shape != str || !strings.HasPrefix(n.value, "/"):
			return nil, "is not a path of a cgroup: write it from the root of the hierarchy, such as /agents.slice"
		case path.Clean(n.value) != n.value && path.Clean(n.value)+"/" != n.value:
			return nil, "is not a plain path of a cgroup: write " + quoted(path.Clean(n.value))
		}
		return path.Clean(n.value), ""
	},
}

func writePath(data any) string { return text.YAML(strings.ReplaceAll(data.(string), "$", "$$")) }

// grants are paths that a call is shown; the word workspace stands for its own
// folder, which it has anyway.
func grants() *kind {
	granted := *pathKind("path", pathSome)
	granted.read = func(r *reader, n *node) (any, string) {
		if n.file.layer == LayerFlag { // which a shell has read; it is judged where it is opened
			return n.value, ""
		}
		if n.shape == str && n.value == workspaceWord {
			return workspaceWord, ""
		}
		path, wrong := r.path(n)
		if wrong == "" {
			wrong = refuseGrant(path)
		}
		return path, wrong // checkGrants looks whether it is there
	}
	k := listOf("list of paths", &granted)
	k.write = func(data any) string {
		var shown []string
		for _, path := range data.([]string) {
			shown = append(shown, writePath(path))
		}
		return "[" + strings.Join(shown, ", ") + "]"
	}
	return k
}

// wordKind is a word for a program, with ${VARIABLE} and a leading ~/.
var wordKind = &kind{name: "text", schema: wordSchema(), read: func(r *reader, n *node) (any, string) { return r.word(n) }}

// featureList is a list of names of sandbox features.
func featureList(names ...string) *kind {
	return listOf("list of "+listed(names, "or"), enum(names...))
}

// jsonKind is any value, for JSON.
var jsonKind = &kind{
	name: "any value", schema: &jsonschema.Schema{},
	read: func(_ *reader, n *node) (any, string) {
		raw, wrong := toJSON(n)
		return raw, wrong
	},
}

var jsonListKind = &kind{
	name: "list of values", schema: listSchema(&jsonschema.Schema{}),
	read: func(_ *reader, n *node) (any, string) {
		if n.shape != list || len(n.items) == 0 {
			return nil, "is not a list with values: write [a, b]"
		}
		values := []json.RawMessage{}
		for _, item := range n.items {
			raw, wrong := toJSON(item)
			if wrong != "" {
				return nil, wrong
			}
			values = append(values, raw)
		}
		return values, ""
	},
}

// toJSON is the JSON of a node. Of numbers, only those that JSON has.
func toJSON(n *node) (raw json.RawMessage, wrong string) {
	var value any
	switch n.shape {
	case str:
		value = n.value
	case boolean:
		value = n.value == "true"
	case number:
		if !json.Valid([]byte(n.value)) {
			return nil, "is not a JSON number: write it in plain digits, or in quotes if it is text"
		}
		return json.RawMessage(n.value), ""
	case list:
		items := []json.RawMessage{}
		for _, item := range n.items {
			raw, wrong := toJSON(item)
			if wrong != "" {
				return nil, wrong
			}
			items = append(items, raw)
		}
		value = items
	case mapping:
		members := map[string]json.RawMessage{}
		for _, e := range n.entries {
			raw, wrong := toJSON(e.value)
			if wrong != "" {
				return nil, wrong
			}
			members[e.key.value] = raw
		}
		value = members
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, "cannot be written as JSON: " + err.Error()
	}
	return raw, ""
}

var numberKind = &kind{
	name: "number", schema: &jsonschema.Schema{Type: "number"},
	read: func(_ *reader, n *node) (any, string) {
		v, err := strconv.ParseFloat(n.value, 64)
		if n.shape != number || err != nil {
			return nil, "is not a number"
		}
		return v, ""
	},
}

// variable is what an environment variable is given.
type variable struct {
	value string
	// passed on from the host's environment, if it is set there.
	passed, set bool
}

var variableKind = &kind{
	name:   "text; nothing passes the host's own on",
	schema: &jsonschema.Schema{Types: []string{"string", "number", "boolean", "null"}},
	read: func(r *reader, n *node) (any, string) {
		if n.shape == nothing {
			value, set := r.variableOf(n.value)
			return variable{value, true, set}, ""
		}
		if n.shape == list || n.shape == mapping {
			return nil, "is not text"
		}
		if n.file.layer == LayerFlag {
			return variable{value: n.value, set: true}, ""
		}
		value, wrong := r.expand(n.value, nil)
		return variable{value: value, set: true}, wrong
	},
}

// words is a command line: as it was written, and as words.
type words struct {
	list   []string
	script string // where it was one text
	text   bool
}

// wordsKind is a list of words, or one text that is split as a shell would,
// but by none. Its pieces are expanded where the type of tool is known.
var wordsKind = &kind{
	name:   "list of words, or text that is split at spaces",
	schema: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{textSchema(), {Type: "array", Items: wordSchema(), MinItems: new(1)}}},
	read: func(r *reader, n *node) (any, string) {
		if n.shape == str && strings.TrimSpace(n.value) != "" {
			return words{script: n.value, text: true}, ""
		}
		if n.shape != list || len(n.items) == 0 {
			return nil, "is not a command: write a list of words such as [rg, --json, \"{pattern}\"]"
		}
		var w words
		wrong := ""
		for _, item := range n.items {
			if item.shape == list || item.shape == mapping || item.shape == nothing {
				r.refuse(item, "is not a word: quote what holds a brace, a bracket or a colon, as in \"{pattern}\"")
				wrong = reported
			}
			w.list = append(w.list, item.value)
		}
		return w, wrong
	},
}
