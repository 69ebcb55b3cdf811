package mcp

import (
	"regexp"
	"slices"
)

// loosen takes from a schema the regular expressions that are invalid in Go, the types
// that JSON Schema does not have, and what would refuse more without them: a schema that
// takes more in "not" takes less. It is changed, too, where bounds were of an older form.
func loosen(schema map[string]any) (dropped int, changed bool) {
	l := &loosening{}
	if l.schema(schema); l.dropped > 0 {
		l.refs = true
		l.schema(schema)
	}
	return l.dropped, l.dropped > 0 || l.renewed
}

type loosening struct {
	dropped int
	refs    bool // may lead to what takes more now
	renewed bool
}

// schema says whether a schema may take more than it did.
func (l *loosening) schema(node any) (more bool) {
	s, is := node.(map[string]any)
	if !is {
		return false
	}
	l.bound(s, "minimum", "exclusiveMinimum")
	l.bound(s, "maximum", "exclusiveMaximum")
	if pattern, is := s["pattern"].(string); is && !compiles(pattern) {
		delete(s, "pattern")
		l.dropped, more = l.dropped+1, true
	}
	if !typed(s["type"]) {
		delete(s, "type")
		l.dropped, more = l.dropped+1, true
	}
	named, _ := s["patternProperties"].(map[string]any)
	for pattern := range named {
		if !compiles(pattern) {
			delete(named, pattern)
			delete(s, "additionalProperties") // these were none
			l.dropped, more = l.dropped+1, true
		}
	}
	if _, is := s["$ref"]; is && l.refs {
		more = true
	}
	for keyword, part := range s {
		if l.keyword(keyword, part) {
			turned(s, keyword)
			more = true
		}
	}
	if more {
		delete(s, "unevaluatedProperties")
		delete(s, "unevaluatedItems")
	}
	return more
}

// bound writes an exclusive bound as a number. In draft 4, and so in OpenAPI 3.0, it is
// whether the bound beside it is one.
func (l *loosening) bound(s map[string]any, inclusive, exclusive string) {
	is, older := s[exclusive].(bool)
	if !older {
		return
	}
	l.renewed = true
	delete(s, exclusive)
	if limit, has := s[inclusive]; is && has {
		s[exclusive] = limit
		delete(s, inclusive)
	}
}

// keyword goes on with the subschemas of a keyword. What stands below others is data.
func (l *loosening) keyword(name string, part any) (more bool) {
	switch name {
	case "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions":
		named, _ := part.(map[string]any)
		for _, one := range named {
			more = l.schema(one) || more
		}
	case "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "items", "prefixItems", "additionalItems", "contains",
		"additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema":
		if list, is := part.([]any); is {
			for _, one := range list {
				more = l.schema(one) || more
			}
			return more
		}
		return l.schema(part)
	}
	return more
}

// turned takes out the keyword by which a schema takes less where its subschema takes more.
func turned(s map[string]any, keyword string) {
	switch keyword {
	case "not":
		delete(s, "not")
	case "if":
		delete(s, "if")
		delete(s, "then")
		delete(s, "else")
	case "contains":
		delete(s, "maxContains")
	case "oneOf":
		all, _ := s["allOf"].([]any)
		s["allOf"] = append(all, map[string]any{"anyOf": s["oneOf"]})
		delete(s, "oneOf")
	}
}

// typed says of the value of a schema's type that it has no name that is unknown.
func typed(value any) bool {
	names, is := value.([]any)
	if !is {
		names = []any{value}
	}
	return !slices.ContainsFunc(names, func(one any) bool {
		name, is := one.(string)
		return is && !slices.Contains([]string{"array", "boolean", "integer", "null", "number", "object", "string"}, name)
	})
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}
