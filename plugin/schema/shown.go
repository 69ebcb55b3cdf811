package schema

import (
	"encoding/json"
	"math"
)

// An error of the library's spells out the value and the rule, is copied at each
// subschema on its way, and is thrown away where an alternative is tried: so many
// bytes of that take the time of a step, and all steps together some 100 MiB of
// memory. A short one is part of the step that makes it.
const (
	textStep  = 64
	shortText = 256
)

func (p *pricer) payText(bytes int) { p.pay(max(bytes-shortText, 0) / textStep) }

// shown is how much of the value and of the rule is in the error of a keyword.
func (p *pricer) shown(key string, part, value any) int {
	switch key {
	case "type", "enum", "const":
		return p.size(value) + p.size(part)
	case "pattern", "minLength", "maxLength":
		if _, ok := value.(string); ok {
			return p.size(value) + p.size(part)
		}
	case "contains":
		if _, ok := value.([]any); ok {
			return p.size(value) + p.size(part) // the rule is in that of explain, as with not
		}
	case "not":
		return p.size(part)
	case "required", "dependentRequired", "dependencies", "additionalProperties":
		if object, ok := value.(map[string]any); ok {
			return max(p.size(part), p.sizeOfNames(object))
		}
	}
	return 0
}

// size is about how long a value is when it is formatted. It stops at what cannot
// be paid for.
func (p *pricer) size(value any) (n int) {
	most := p.left*textStep + shortText
	switch v := value.(type) {
	case string:
		return quoted(v)
	case json.Number:
		return len(v)
	case float64: // 1e300 is spelled out
		if size := math.Abs(v); size > 1e21 || size < 1e-9 && size > 0 {
			return 1100
		}
	case []any:
		for _, one := range v {
			if n += 1 + p.size(one); n > most {
				break
			}
		}
	case map[string]any:
		for name, one := range v {
			if n += 2 + quoted(name) + p.size(one); n > most {
				break
			}
		}
	}
	return n + len("map[]")
}

func (p *pricer) sizeOfNames(object map[string]any) (n int) {
	for name := range object {
		n += 1 + quoted(name)
	}
	return n
}

// quoted is about the length of a text in quotes.
func quoted(text string) int {
	n := len(text) + 2
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ':
			n += 3
		case c >= 0x7f:
			n += 2
		case c == '"', c == '\\':
			n++
		}
	}
	return n
}
