package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// makeUp makes the smallest arguments that a schema allows, or says why it
// can't.
func makeUp(schema []byte) (json.RawMessage, error) {
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, err
	}
	m := &maker{root: root, left: maxMade}
	value, err := m.value(root, 0)
	if err != nil {
		return nil, err
	}
	if value == nil {
		value = map[string]any{}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if err := satisfies(schema, raw); err != nil {
		return nil, fmt.Errorf("its schema has rules that this program cannot meet: %w", err)
	}
	return raw, nil
}

type maker struct {
	root any
	left int // values that may still be made
}

const (
	maxMakeDepth = 16
	maxMade      = 10_000
)

var errTooDeep = errors.New("its schema is too large or nested too deep, or refers to itself")

// value makes a value of a schema. What the schema itself gives as an example
// comes first.
func (m *maker) value(schema any, depth int) (any, error) {
	s, ok := schema.(map[string]any)
	if !ok { // true, or nothing at all
		return "x", nil
	}
	if m.left--; depth > maxMakeDepth || m.left < 0 {
		return nil, errTooDeep
	}
	if ref, ok := s["$ref"].(string); ok {
		return m.value(m.find(ref), depth+1)
	}
	for _, key := range []string{"const", "default", "example"} {
		if v, ok := s[key]; ok {
			return v, nil
		}
	}
	for _, key := range []string{"examples", "enum"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			return list[0], nil
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 && s["properties"] == nil {
			return m.value(list[0], depth+1)
		}
	}
	return m.typed(m.merged(s), depth)
}

// merged adds what allOf says.
func (m *maker) merged(s map[string]any) map[string]any {
	list, _ := s["allOf"].([]any)
	if len(list) == 0 {
		return s
	}
	s = maps.Clone(s)
	for _, part := range list {
		p, _ := part.(map[string]any)
		if ref, ok := p["$ref"].(string); ok {
			p, _ = m.find(ref).(map[string]any)
		}
		for key, value := range p {
			switch have := s[key].(type) {
			case []any:
				if more, ok := value.([]any); ok {
					s[key] = slices.Concat(have, more)
				}
			case map[string]any:
				if more, ok := value.(map[string]any); ok {
					have = maps.Clone(have)
					maps.Copy(have, more)
					s[key] = have
				}
			case nil:
				s[key] = value
			}
		}
	}
	return s
}

func (m *maker) typed(s map[string]any, depth int) (any, error) {
	switch typeOf(s) {
	case "object":
		return m.object(s, depth)
	case "array":
		return m.array(s, depth)
	case "string":
		return textFor(s), nil
	case "integer", "number":
		return number(s), nil
	case "boolean":
		return false, nil
	case "null":
		return nil, nil
	}
	return "x", nil
}

// typeOf is a schema's type, the first of several that is not null.
func typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok && name != "null" {
				return name
			}
		}
		return "null"
	}
	if s["properties"] != nil || s["required"] != nil {
		return "object"
	}
	return ""
}

// object has the required properties only.
func (m *maker) object(s map[string]any, depth int) (any, error) {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	object := map[string]any{}
	for _, name := range required {
		key, _ := name.(string)
		value, err := m.value(properties[key], depth+1)
		if err != nil {
			return nil, err
		}
		object[key] = value
	}
	return object, nil
}

// maxMadeItems keeps made-up lists and texts small.
const maxMadeItems = 1000

func (m *maker) array(s map[string]any, depth int) (any, error) {
	n := int(min(limit(s, "minItems", 0), maxMadeItems))
	list := make([]any, 0, n)
	for range n {
		value, err := m.value(s["items"], depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

// formats are a text of each format that JSON Schema names (2020-12, 7.3).
var formats = map[string]string{
	"date-time": "2000-01-01T00:00:00Z", "date": "2000-01-01", "time": "00:00:00Z", "duration": "PT1S",
	"email": "someone@example.org", "hostname": "example.org", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.org/", "url": "https://example.org/", "uri-reference": "/x", "uuid": "00000000-0000-4000-8000-000000000000",
	"json-pointer": "/x", "regex": "x",
}

func textFor(s map[string]any) string {
	format, _ := s["format"].(string)
	if value, ok := formats[format]; ok {
		return value
	}
	n := limit(s, "minLength", 1)
	n = max(min(n, limit(s, "maxLength", maxMadeItems), maxMadeItems), 0)
	return strings.Repeat("x", int(n))
}

func limit(s map[string]any, key string, otherwise float64) float64 {
	if v, ok := s[key].(float64); ok {
		return v
	}
	return otherwise
}

// number is the one nearest to 1 that the bounds allow.
func number(s map[string]any) float64 {
	step := limit(s, "multipleOf", 1)
	low := max(limit(s, "minimum", math.Inf(-1)), limit(s, "exclusiveMinimum", math.Inf(-1))+step)
	high := min(limit(s, "maximum", math.Inf(1)), limit(s, "exclusiveMaximum", math.Inf(1))-step)
	value := min(max(1, low), high)
	if step > 0 {
		value = math.Ceil(value/step) * step
	}
	return value
}

// find follows a JSON pointer (RFC 6901) into the schema itself.
func (m *maker) find(ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	node := m.root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if token == "" {
			continue
		}
		object, _ := node.(map[string]any)
		node = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	return node
}

// madeUpTimeoutMs is for a call that may never end.
const madeUpTimeoutMs = 2000

// badArguments are what no implementation should take for its arguments.
func badArguments(schema []byte) []call {
	list := []call{
		{Name: "no JSON", Arguments: `{"`},
		{Name: "a list", Arguments: "[]"},
	}
	var s struct {
		Properties map[string]map[string]any `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		wrong, ok := wrongFor[typeOf(s.Properties[name])]
		if !ok || len(list) > 4 {
			continue
		}
		raw, _ := json.Marshal(map[string]any{name: wrong})
		list = append(list, call{Name: string(raw), Arguments: string(raw)})
	}
	for i := range list {
		list[i].MadeUp, list[i].TimeoutMs = true, madeUpTimeoutMs
	}
	return list
}

// wrongFor has a value of another type for each.
var wrongFor = map[string]any{
	"string": map[string]any{"wrong": 1}, "integer": "wrong", "number": "wrong", "boolean": "wrong",
	"array": "wrong", "object": "wrong",
}
