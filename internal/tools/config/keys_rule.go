package config

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/internal/tools/argrule"
	"github.com/toolhost/toolhost/turn"
)

// patternsKind is a pattern of an argument, or a list of them.
var patternsKind = &kind{
	name:   "pattern, or list of patterns",
	schema: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{wordSchema(), {Type: "array", Items: wordSchema(), MinItems: new(1)}}},
	read: func(r *reader, n *node) (any, string) {
		if n.shape != list {
			p, wrong := readPattern(n)
			return []argrule.Pattern{p}, wrong
		}
		if len(n.items) == 0 || len(n.items) > maxItems {
			return nil, "is not a list of 1 to 256 patterns"
		}
		var patterns []argrule.Pattern
		for _, item := range n.items {
			p, wrong := readPattern(item)
			if wrong != "" {
				r.refuse(item, wrong)
				return nil, reported
			}
			patterns = append(patterns, p)
		}
		return patterns, ""
	},
}

func readPattern(n *node) (p argrule.Pattern, wrong string) {
	if n.shape == list || n.shape == mapping || n.shape == nothing {
		return p, "is not a pattern: write what the argument must be, such as /srv/**"
	}
	return argrule.Parse(n.value)
}

var argumentNames = namesLike("ARGUMENT", `^[^.]{1,128}$`, "is not a name of an argument: write 1 to 128 characters, without dots")

// rule adds one that the file has.
func (t *Tool) rule(mode turn.Mode, s setting) {
	t.Rules = append(t.Rules, argrule.Rule{Mode: mode, Argument: s.name, Patterns: s.data.([]argrule.Pattern)})
}
