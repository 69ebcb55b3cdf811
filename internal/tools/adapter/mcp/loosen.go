package mcp

import (
	"regexp"
	"slices"
)

// loosen takes from a schema the regular expressions that are invalid in Go, the types
// that JSON Schema does not have, and what would refuse more without them: a schema that
// takes more in "not" takes less.
func loosen(schema map[string]any) (dropped int) {
	l := &loosening{}
	if l.schema(schema); l.dropped > 0 {
		l.refs = true
		l.schema(schema)
	}
	return l.dropped
}

type loosening struct {
	dropped int
	refs    bool // may lead to what takes more now
}

// schema says whether a schema may take more than it did.
func (l *loosening) schema(node any) (more bool) {
	s, is := node.(map[string]any)
	if !is {
		return false
	}
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
