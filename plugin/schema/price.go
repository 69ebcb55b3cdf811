package schema

import (
	"errors"
	"fmt"
)

// maxSteps bounds the subschemas that are applied to a value and what it is made
// of: a few references can double them with each level of the value, and no
// timeout ends a check. So many take about a second.
const maxSteps = 1 << 20

// maxNesting bounds the subschemas within one another: an error of validating
// spells out the way at each of them, and so grows with the square of their
// number.
const maxNesting = 2000

// ErrTooDear is why a value is not checked.
var ErrTooDear = fmt.Errorf("it cannot be checked: its schema and it together make more than %d steps of that, or are nested deeper than %d", maxSteps, maxNesting)

// A regular expression takes time in proportion to its instructions and to the
// text: so many of their product take that of a step.
const patternStep = 128

// pricer walks through a schema and a value as validating does, but takes every
// subschema for one that applies.
type pricer struct {
	*checker
	left    int
	nesting int
}

// price is ErrTooDear for a check that might not end.
func price(c *checker, value any) error {
	p := &pricer{checker: c, left: maxSteps}
	p.apply(c.root, value)
	if p.left < 0 {
		return ErrTooDear
	}
	return nil
}

func (p *pricer) pay(steps int) (can bool) {
	p.left -= steps
	return p.left >= 0
}

func (p *pricer) payMatch(pattern, text string) {
	p.pay(max((len(text)+1)*max(p.patterns[pattern].instructions, patternStep/16)/patternStep, 1)) // also where there is no text
}

func (p *pricer) apply(node, value any) {
	schema, ok := node.(map[string]any)
	if !ok || !p.pay(1) {
		return
	}
	if p.nesting++; p.nesting > maxNesting {
		p.left = -1
	}
	defer func() { p.nesting-- }()
	for key, part := range schema {
		if p.left < 0 {
			return
		}
		p.keyword(key, part, value)
	}
}

// keyword applies what a keyword holds to the same value, or to its parts.
func (p *pricer) keyword(key string, part, value any) {
	switch key {
	case "not", "if", "then", "else":
		p.apply(part, value)
	case "allOf", "anyOf", "oneOf":
		list, _ := part.([]any)
		for _, one := range list {
			p.apply(one, value)
		}
	case "dependentSchemas", "dependencies":
		named, _ := part.(map[string]any)
		for _, one := range named {
			p.apply(one, value)
		}
	case "$ref", "$dynamicRef", "$recursiveRef":
		if ref, ok := part.(string); ok {
			target, _ := p.resolve(ref) // an error was found when the schema was parsed
			p.apply(target, value)
		}
	case "enum":
		list, _ := part.([]any)
		p.pay(len(list))
	default:
		p.children(key, part, value)
	}
}

func (p *pricer) children(key string, part, value any) {
	switch v := value.(type) {
	case []any:
		p.items(key, part, v)
	case map[string]any:
		p.properties(key, part, v)
	case string:
		if pattern, ok := part.(string); ok && key == "pattern" {
			p.payMatch(pattern, v)
		}
	}
}

func (p *pricer) items(key string, part any, values []any) {
	list, positions := part.([]any)
	switch key {
	case "items", "prefixItems", "additionalItems", "contains", "unevaluatedItems":
	case "uniqueItems":
		p.pay(len(values))
		return
	default:
		return
	}
	for i, value := range values {
		switch {
		case p.left < 0 || positions && i == len(list):
			return
		case positions:
			p.apply(list[i], value)
		default:
			p.apply(part, value)
		}
	}
}

func (p *pricer) properties(key string, part any, values map[string]any) {
	named, _ := part.(map[string]any)
	switch key {
	case "properties":
		for name, one := range named {
			if value, ok := values[name]; ok {
				p.apply(one, value)
			}
		}
	case "patternProperties":
		for pattern, one := range named {
			p.each(values, func(name string, value any) {
				p.payMatch(pattern, name)
				p.apply(one, value)
			})
		}
	case "additionalProperties", "unevaluatedProperties":
		p.each(values, func(_ string, value any) { p.apply(part, value) })
	case "propertyNames":
		p.each(values, func(name string, _ any) { p.apply(part, name) })
	}
}

func (p *pricer) each(values map[string]any, do func(name string, value any)) {
	for name, value := range values {
		if !p.pay(1) {
			return
		}
		do(name, value)
	}
}

var errInnerID = errors.New("it has a $id below its root, which would lead its $refs elsewhere")
