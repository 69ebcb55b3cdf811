package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A schema comes from the tool, and validating by it runs in the host: these
// bound what it can cost there.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 64
	// maxInPlace is how many subschemas may apply to one and the same value.
	maxInPlace = 512
)

// checkSchema refuses a schema whose validation might not end: one that is too
// large or too deep, refers outside itself, or applies too many subschemas to
// one value, for ever by a cycle.
func checkSchema(raw []byte) error {
	if len(raw) > maxSchemaBytes {
		return fmt.Errorf("it has %d bytes, at most %d are allowed", len(raw), maxSchemaBytes)
	}
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return err
	}
	return (&schemaChecker{root: root}).walk(root, 0)
}

type schemaChecker struct {
	root  any
	nodes int
}

// walk visits every part of the document and measures from each what applies
// in place.
func (c *schemaChecker) walk(node any, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("it is nested deeper than %d", maxSchemaDepth)
	}
	switch n := node.(type) {
	case map[string]any:
		c.nodes = 0
		if err := c.inPlace(n, 0); err != nil {
			return err
		}
		for _, child := range n {
			if err := c.walk(child, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range n {
			if err := c.walk(child, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

var errTooManyInPlace = errors.New("its $ref, allOf and the like apply too many subschemas to one value, or form a cycle")

// inPlace follows the keywords whose subschemas apply to the same value.
func (c *schemaChecker) inPlace(node any, depth int) error {
	n, ok := node.(map[string]any)
	if !ok {
		return nil
	}
	if c.nodes++; c.nodes > maxInPlace || depth > maxSchemaDepth {
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
func (c *schemaChecker) follow(n map[string]any, depth int) error {
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

// resolve finds a JSON pointer (RFC 6901) in the document.
func (c *schemaChecker) resolve(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("its $ref %q is no JSON pointer into itself (#/...)", ref)
	}
	node := c.root
	if pointer == "" {
		return node, nil
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch n := node.(type) {
		case map[string]any:
			node = n[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(n) {
				return nil, fmt.Errorf("its $ref %q leads nowhere", ref)
			}
			node = n[i]
		default:
			return nil, fmt.Errorf("its $ref %q leads nowhere", ref)
		}
	}
	return node, nil
}
