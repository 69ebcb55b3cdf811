package schema

import (
	"encoding/json"
	"maps"
	"slices"
)

// list has the rules of a list and its items.
func (f *finder) list(rules map[string]any, value any, where path) error {
	list, ok := value.([]any)
	if !ok {
		return nil
	}
	positions, _ := rules["prefixItems"].([]any)
	rest := rules["items"]
	if f.draft7 {
		if positions, ok = rest.([]any); ok {
			rest = rules["additionalItems"]
		}
	}
	for i, item := range list {
		node := rest
		if i < len(positions) {
			node = positions[i]
		}
		if err := f.broken(node, item, where.item(i)); err != nil {
			return err
		}
	}
	if err := f.contains(rules, list, where); err != nil {
		return err
	}
	if err := within(rules, value, where, "minItems", "maxItems"); err != nil {
		return err
	}
	if rules["uniqueItems"] == true && repeated(list) {
		return where.says("want unique items, but two are equal (uniqueItems)")
	}
	return nil
}

func (f *finder) contains(rules map[string]any, list []any, where path) error {
	node, ok := rules["contains"]
	if !ok {
		return nil
	}
	n := 0
	for _, item := range list {
		if f.fits(node, item) {
			n++
		}
	}
	least, bounded := rules["minContains"].(float64)
	most, limited := rules["maxContains"].(float64)
	switch {
	case n == 0 && (!bounded || least > 0):
		return where.says("want an item that fits %s (contains)", literals([]any{node}))
	case bounded && float64(n) < least:
		return where.says("want at least %s items that fit %s (minContains), not %d", show(least), literals([]any{node}), n)
	case limited && float64(n) > most:
		return where.says("want at most %s items that fit %s (maxContains), not %d", show(most), literals([]any{node}), n)
	}
	return nil
}

// repeated says whether two items are equal.
func repeated(list []any) bool {
	seen := map[string]bool{}
	for _, item := range list {
		raw, _ := json.Marshal(item) // of what was JSON
		if seen[string(raw)] {
			return true
		}
		seen[string(raw)] = true
	}
	return false
}

// object has the rules of an object and its properties.
func (f *finder) object(rules map[string]any, value any, where path) error {
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	keys := slices.Sorted(maps.Keys(object))
	if err := f.properties(rules, object, keys, where); err != nil {
		return err
	}
	if node, ok := rules["propertyNames"]; ok {
		for _, key := range keys {
			if err := f.broken(node, key, where.property(key)+" (its name)"); err != nil {
				return err
			}
		}
	}
	if err := within(rules, value, where, "minProperties", "maxProperties"); err != nil {
		return err
	}
	if absent := missing(rules["required"], object); len(absent) > 0 {
		return where.says("missing %s (required)", names(absent))
	}
	return f.dependent(rules, object, keys, where)
}

// properties are by name, by pattern, and the others.
func (f *finder) properties(rules, object map[string]any, keys []string, where path) error {
	named, _ := rules["properties"].(map[string]any)
	patterns, _ := rules["patternProperties"].(map[string]any)
	additional, bounded := rules["additionalProperties"]
	var unknown []string
	for _, key := range keys {
		var nodes []any
		if node, ok := named[key]; ok {
			nodes = append(nodes, node)
		}
		for pattern, node := range patterns {
			if f.matches(pattern, key) {
				nodes = append(nodes, node)
			}
		}
		switch {
		case len(nodes) == 0 && additional == false:
			unknown = append(unknown, key)
		case len(nodes) == 0 && bounded:
			nodes = []any{additional}
		}
		for _, node := range nodes {
			if err := f.broken(node, object[key], where.property(key)); err != nil {
				return err
			}
		}
	}
	if len(unknown) > 0 {
		return where.says("unknown %s: want %s (additionalProperties)", names(unknown), known(rules))
	}
	return nil
}

// dependent has what the presence of a property asks for: in draft 7 one keyword
// says which others, or by what subschema.
func (f *finder) dependent(rules, object map[string]any, keys []string, where path) error {
	needs, _ := rules["dependentRequired"].(map[string]any)
	fits, _ := rules["dependentSchemas"].(map[string]any)
	if f.draft7 {
		needs, _ = rules["dependencies"].(map[string]any)
		fits = needs
	}
	for _, key := range keys {
		if absent := missing(needs[key], object); len(absent) > 0 {
			return where.says("missing %s beside %s (dependentRequired)", names(absent), quote(key))
		}
		if err := f.broken(fits[key], object, where); err != nil {
			return err
		}
	}
	return nil
}
