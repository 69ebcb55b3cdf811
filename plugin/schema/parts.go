package schema

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/toolhost/toolhost/internal/lazy"
)

// part is one of what a value is made of.
type part struct {
	value any
	path  path
}

// parts are those that a keyword of a subschema applies to; descends is false
// where it applies to the value itself.
func (e *explainer) parts(at, keyword, rest string, value any, where path) (list []part, descends bool) {
	node, _ := e.find(at)
	rules, _ := node.(map[string]any)
	switch v := value.(type) {
	case map[string]any:
		return propertyParts(rules, keyword, rest, v, where)
	case []any:
		return itemParts(rules, keyword, rest, v, where)
	}
	return nil, false
}

func propertyParts(rules map[string]any, keyword, rest string, value map[string]any, where path) (list []part, descends bool) {
	var keys []string
	switch keyword {
	case "properties":
		keys = []string{rest}
	case "patternProperties":
		pattern := compiled(rest)
		keys = slices.DeleteFunc(slices.Collect(maps.Keys(value)), func(key string) bool { return !pattern.MatchString(key) })
	case "additionalProperties", "unevaluatedProperties":
		keys = additional(rules, value)
	case "propertyNames":
		for key := range value {
			list = append(list, part{key, where.property(key) + " (its name)"})
		}
		return list, true
	default:
		return nil, false
	}
	slices.Sort(keys)
	for _, key := range keys {
		list = append(list, part{value[key], where.property(key)})
	}
	return list, true
}

func itemParts(rules map[string]any, keyword, rest string, value []any, where path) (list []part, descends bool) {
	from, to := 0, len(value)
	switch keyword {
	case "items", "prefixItems":
		if i, err := strconv.Atoi(rest); err == nil {
			from, to = min(i, to), min(i+1, to)
			break
		}
		prefix, _ := rules["prefixItems"].([]any)
		from = min(len(prefix), to)
	case "additionalItems":
		positions, _ := rules["items"].([]any)
		from = min(len(positions), to)
	case "unevaluatedItems":
	default:
		return nil, false
	}
	for i := from; i < to; i++ {
		list = append(list, part{value[i], where.item(i)})
	}
	return list, true
}

// additional are the properties of a value that a subschema does not name.
func additional(rules, value map[string]any) (keys []string) {
	properties, _ := rules["properties"].(map[string]any)
	named, _ := rules["patternProperties"].(map[string]any)
	var patterns []*regexp.Regexp
	for pattern := range named {
		patterns = append(patterns, compiled(pattern))
	}
	for key := range value {
		if _, ok := properties[key]; !ok && !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(key) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

var never = lazy.Regexp(`[^\s\S]`)

// compiled is a pattern that was compiled once when the schema was parsed.
func compiled(pattern string) *regexp.Regexp {
	if p, err := regexp.Compile(pattern); err == nil {
		return p
	}
	return never()
}
