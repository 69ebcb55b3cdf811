package schema

import "fmt"

// maxSteps bounds the subschemas that are applied to a value and its parts: a few
// references can double them with each level of the value, and no timeout ends a
// check. So many take about a second.
const maxSteps = 1 << 20

// maxNesting bounds the subschemas within one another: an error of validating
// spells out the way at each of them, and so grows with the square of their
// number.
const maxNesting = 2000

// ErrTooDear is returned by Validate for a value that would take too long to check.
var ErrTooDear = fmt.Errorf("it takes too long to check by its schema: more than %d steps, or nested deeper than %d", maxSteps, maxNesting)

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

// price returns ErrTooDear for a check that would take too long.
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

// apply pays for a subschema, and returns how long its error may be.
func (p *pricer) apply(node, value any) (text int) {
	schema, ok := node.(map[string]any)
	if !ok {
		return p.longest
	}
	if !p.pay(1) {
		return 0
	}
	if p.nesting++; p.nesting > maxNesting {
		p.left = -1
	}
	defer func() { p.nesting-- }()
	for key, part := range schema {
		if p.left < 0 {
			return 0
		}
		text = max(text, p.keyword(key, part, value), p.shown(key, part, value))
	}
	text += p.longest
	p.payText(text)
	return text
}

// keyword applies what a keyword holds to the same value, or to its parts.
func (p *pricer) keyword(key string, part, value any) (text int) {
	switch key {
	case "not", "if":
		p.apply(part, value)
	case "then", "else":
		return p.apply(part, value)
	case "allOf", "anyOf", "oneOf":
		list, _ := part.([]any)
		return p.list(key, list, value)
	case "dependentSchemas", "dependencies":
		named, _ := part.(map[string]any)
		for _, one := range named {
			text = max(text, p.apply(one, value))
		}
	case "$ref", "$dynamicRef", "$recursiveRef":
		if ref, ok := part.(string); ok {
			target, _ := p.resolve(ref) // an error was found when the schema was parsed
			return p.apply(target, value)
		}
	case "enum":
		list, _ := part.([]any)
		p.pay(len(list))
	default:
		return p.children(key, part, value)
	}
	return text
}

// list has the errors of all alternatives in that of anyOf, which names them, too.
func (p *pricer) list(key string, list []any, value any) (text int) {
	all := 0
	for _, one := range list {
		own := p.apply(one, value)
		text, all = max(text, own), all+own
	}
	if key == "allOf" {
		return text
	}
	p.payText(2 * all) // the library joins and formats them
	return all + len(list)*p.longest
}

func (p *pricer) children(key string, part, value any) (text int) {
	switch v := value.(type) {
	case []any:
		return p.items(key, part, v)
	case map[string]any:
		return p.properties(key, part, v)
	case string:
		if pattern, ok := part.(string); ok && key == "pattern" {
			p.payMatch(pattern, v)
		}
	}
	return 0
}

func (p *pricer) items(key string, part any, values []any) (text int) {
	list, positions := part.([]any)
	switch key {
	case "items", "prefixItems", "additionalItems", "contains", "unevaluatedItems":
	case "uniqueItems":
		p.pay(len(values))
		return 0
	default:
		return 0
	}
	for i, value := range values {
		switch {
		case p.left < 0 || positions && i == len(list):
			return text
		case positions:
			text = max(text, p.apply(list[i], value))
		default:
			text = max(text, p.apply(part, value))
		}
	}
	return text
}

func (p *pricer) properties(key string, part any, values map[string]any) (text int) {
	named, _ := part.(map[string]any)
	switch key {
	case "properties":
		for name, one := range named {
			if value, ok := values[name]; ok {
				text = max(text, p.apply(one, value))
			}
		}
	case "patternProperties":
		for pattern, one := range named {
			text = max(text, p.each(values, func(name string, value any) int {
				p.payMatch(pattern, name)
				return p.apply(one, value)
			}))
		}
	case "additionalProperties", "unevaluatedProperties":
		return p.each(values, func(_ string, value any) int { return p.apply(part, value) })
	case "propertyNames":
		return p.each(values, func(name string, _ any) int { return p.apply(part, name) })
	}
	return text
}

func (p *pricer) each(values map[string]any, apply func(name string, value any) (text int)) (text int) {
	for name, value := range values {
		if !p.pay(1) {
			return 0
		}
		text = max(text, apply(name, value))
	}
	return text
}
