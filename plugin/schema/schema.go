// Package schema checks JSON Schemas of tools and validates values by them. The
// schemas are untrusted and validation runs in the host, so its cost is
// bounded.
package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/plugin/wirejson"
)

// Bounds of a schema.
const (
	MaxBytes = 256 << 10
	MaxDepth = 64
	// MaxInPlace is how many subschemas may apply to one value.
	MaxInPlace = 512
	// MaxParts is how many JSON objects a schema may consist of: even a short one
	// takes memory.
	MaxParts = 10_000
)

// Schema is a parsed schema. Its methods are safe for concurrent use.
type Schema struct {
	resolved *jsonschema.Resolved
	checked  *checker
	draft7   bool
}

// Bytes returns the approximate memory that the schema takes.
func (s *Schema) Bytes() int {
	return s.checked.parts*1280 + s.checked.instructions*48 + s.checked.runes*4
}

// Validate returns an error if a value, as decoded by encoding/json, violates the
// schema. The error names the place in the value, the rule and, if it is short, the
// value: nodes[1].sub.a: want a number, not the string "x". It is ErrTooDear if the
// check would take too long.
func (s *Schema) Validate(value any) error {
	if err := price(s.checked, value); err != nil {
		return err
	}
	if err := s.resolved.Validate(value); err != nil {
		return s.explain(err, value)
	}
	return nil
}

// Parse parses a schema. It refuses schemas whose validation might not end: those
// that are too large or too deep, refer to other documents, or apply too many
// subschemas to one value, such as by a cycle. It also refuses types that JSON Schema
// does not have.
func Parse(raw []byte) (*Schema, error) {
	checked, raw, err := check(raw)
	if err == nil {
		err = checkTypes(checked.root)
	}
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		if where := misformed(checked.root); where != nil {
			return nil, where
		}
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // which spells out Go's types
			err = fmt.Errorf("its %s is of JSON type %s, which JSON Schema does not have there", cmp.Or(wrong.Field, "root"), wrong.Value)
		}
		return nil, err
	}
	draft7 := isDraft7(schema.Schema)
	schema.Schema = spelt(schema.Schema, draft7)
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{})
	if err != nil {
		return nil, err
	}
	return &Schema{resolved, checked, draft7}, nil
}

// ParseObject is like Parse, and refuses a schema that is not of type object.
func ParseObject(raw []byte) (*Schema, error) {
	s, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	if root, _ := s.checked.root.(map[string]any); root["type"] != "object" {
		return nil, errors.New(`it is not of "type": "object"`)
	}
	return s, nil
}

// check gives the document, too, as the library may have it.
func check(raw []byte) (*checker, []byte, error) {
	if len(raw) > MaxBytes {
		return nil, nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(raw), MaxBytes)
	}
	if !utf8.Valid(raw) {
		return nil, nil, errors.New("it is not UTF-8")
	}
	if err := wirejson.Check(raw); wirejson.IsUnfit(err) {
		return nil, nil, err
	}
	c := &checker{patterns: map[string]size{}}
	if err := json.Unmarshal(raw, &c.root); err != nil {
		return nil, nil, err
	}
	if dropMisleading(c.root) {
		raw, _ = json.Marshal(c.root) // of what was JSON
	}
	return c, raw, c.walk(c.root, 0, 0)
}

// checker finds what a document would cost. Once it has walked it is only read.
type checker struct {
	root         any
	nodes        int // that apply in place
	parts        int
	patterns     map[string]size
	instructions int // of all patterns, each counted wherever it stands
	runes        int
	longest      int // name of a subschema in errors: its place, or what it calls itself
}

// walk visits every part of the document and measures from each what applies
// in place. The way to it has so many bytes.
func (c *checker) walk(node any, way, depth int) error {
	c.longest = max(c.longest, way+len("validating : "))
	if depth > MaxDepth {
		return fmt.Errorf("it is nested deeper than %d", MaxDepth)
	}
	switch n := node.(type) {
	case map[string]any:
		if err := c.object(n); err != nil {
			return err
		}
		for key, child := range n {
			if err := c.walk(child, way+1+len(key), depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range n {
			if err := c.walk(child, way+len("/10000"), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// object is what may be a subschema.
func (c *checker) object(n map[string]any) error {
	if c.parts++; c.parts > MaxParts {
		return fmt.Errorf("it consists of more than %d objects", MaxParts)
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		name, _ := n[key].(string)
		c.longest = max(c.longest, len(name)+len("validating : "))
	}
	if pattern, ok := n["pattern"].(string); ok {
		if err := c.countPattern(pattern); err != nil {
			return err
		}
	}
	named, _ := n["patternProperties"].(map[string]any)
	for pattern := range named {
		if err := c.countPattern(pattern); err != nil {
			return err
		}
	}
	c.nodes = 0
	return c.inPlace(n, 0)
}

var errTooManyInPlace = errors.New("its $ref, allOf and the like apply too many subschemas to one value, or form a cycle")

// inPlace follows the keywords whose subschemas apply to the same value.
func (c *checker) inPlace(node any, depth int) error {
	n, ok := node.(map[string]any)
	if !ok {
		return nil
	}
	if c.nodes++; c.nodes > MaxInPlace || depth > MaxDepth {
		return errTooManyInPlace
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		if err := c.inPlace(n[key], depth+1); err != nil {
			return err
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := n[key].([]any)
		for _, child := range list {
			if err := c.inPlace(child, depth+1); err != nil {
				return err
			}
		}
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		children, _ := n[key].(map[string]any)
		for _, child := range children {
			if err := c.inPlace(child, depth+1); err != nil {
				return err
			}
		}
	}
	return c.follow(n, depth)
}

// follow goes where references point.
func (c *checker) follow(n map[string]any, depth int) error {
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref, ok := n[key].(string)
		if !ok {
			continue
		}
		target, err := c.resolve(ref)
		if err != nil {
			return err
		}
		if err := c.inPlace(target, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// resolve finds the target of a reference, a JSON pointer (RFC 6901), in the
// document.
func (c *checker) resolve(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("its $ref %q is not a JSON pointer into itself (#/...)", ref)
	}
	pointer, err := url.PathUnescape(pointer) // RFC 6901, 6
	if err != nil {
		return nil, fmt.Errorf("its $ref %q is not a URI", ref)
	}
	node, ok := c.find(pointer)
	if !ok {
		return nil, fmt.Errorf("its $ref %q leads nowhere", ref)
	}
	return node, nil
}

func (c *checker) find(pointer string) (node any, ok bool) {
	node = c.root
	if pointer == "" {
		return node, true
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		switch n := node.(type) {
		case map[string]any:
			node = n[unescape(token)]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(n) {
				return nil, false
			}
			node = n[i]
		default:
			return nil, false
		}
	}
	return node, true
}

func unescape(token string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(token) }
