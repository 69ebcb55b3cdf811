package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxRuleBytes bounds what a message says of a rule in the library's words.
const maxRuleBytes = 240

// words says what rule of a subschema a value breaks.
func (e *explainer) words(rule, at string, value any, where path) error {
	node, _ := e.find(at)
	rules, ok := node.(map[string]any)
	if !ok { // false
		return where.says("nothing is allowed here")
	}
	keyword, _, _ := strings.Cut(rule, ":")
	bound := rules[keyword]
	if form, ok := boundForms[keyword]; ok {
		return where.says(form, show(bound), measure(keyword, value))
	}
	switch v, _ := value.(map[string]any); {
	case keyword == "type":
		return where.says("want %s, not %s", typeWords(bound), show(value))
	case keyword == "enum":
		values, _ := bound.([]any)
		return where.says("want one of %s, not %s", literals(values), show(value))
	case keyword == "const":
		return where.says("want %s, not %s", literals([]any{bound}), show(value))
	case keyword == "pattern":
		pattern, _ := bound.(string)
		return where.says("want a string that matches the pattern %s, not %s", ends(pattern, maxRuleBytes), show(value))
	case keyword == "not":
		return where.says("want what does not fit %s (not), not %s", literals([]any{bound}), show(value))
	case keyword == "contains":
		return where.says("want an item that fits %s (contains)", literals([]any{bound}))
	case keyword == "uniqueItems":
		return where.says("want items of which no two are equal (uniqueItems)")
	case keyword == "required":
		return where.says("missing %s (required)", names(missing(bound, v)))
	case strings.HasPrefix(keyword, "unexpected additional properties"):
		unknown := additional(rules, v)
		return where.says("unknown %s: want %s (additionalProperties)", names(unknown), known(rules))
	case strings.HasPrefix(rule, "oneOf: validated"):
		list, _ := bound.([]any)
		return where.says("%s fits several of the %d forms of oneOf, want just one", show(value), len(list))
	case keyword == "anyOf", strings.HasPrefix(rule, "oneOf: did not"):
		return e.alternatives(keyword, at, value, where)
	}
	return where.says("%s", ends(strings.ReplaceAll(rule, "\n", " "), maxRuleBytes))
}

// boundForms are what is said of a bound and of what was measured.
var boundForms = map[string]string{
	"minimum": "want at least %s, not %s", "maximum": "want at most %s, not %s",
	"exclusiveMinimum": "want more than %s, not %s", "exclusiveMaximum": "want less than %s, not %s",
	"multipleOf": "want a multiple of %s, not %s",
	"minLength":  "want at least %s characters, not the %s", "maxLength": "want at most %s characters, not the %s",
	"minItems": "want at least %s items, not %s", "maxItems": "want at most %s items, not %s",
	"minProperties": "want at least %s properties, not %s", "maxProperties": "want at most %s properties, not %s",
}

func measure(keyword string, value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("%d of %s", utf8.RuneCountInString(v), quote(v))
	case []any:
		return fmt.Sprint(len(v))
	case map[string]any:
		return fmt.Sprint(len(v))
	}
	return show(value)
}

// typeNames are those of DecodeError, too.
var typeNames = map[string]string{
	"string": "a string", "number": "a number", "integer": "a whole number", "boolean": "true or false",
	"array": "a list", "object": "an object", "null": "null",
}

func typeWords(bound any) string {
	types, several := bound.([]any)
	if !several {
		types = []any{bound}
	}
	var words []string
	for _, t := range types {
		name, _ := t.(string)
		if word := typeNames[name]; word != "null" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if slices.Contains(types, any("null")) {
		words = append(words, "null")
	}
	return strings.Join(words, " or ")
}

// isOf says whether a value is of one of the types, which are not all that
// there are.
func isOf(value any, types []any) bool {
	name := "null"
	switch v := value.(type) {
	case string:
		name = "string"
	case bool:
		name = "boolean"
	case []any:
		name = "array"
	case map[string]any:
		name = "object"
	case float64:
		if name = "number"; v == math.Trunc(v) && slices.Contains(types, any("integer")) {
			return true
		}
	}
	return slices.Contains(types, any(name))
}

func missing(required any, value map[string]any) (absent []string) {
	list, _ := required.([]any)
	for _, one := range list {
		name, _ := one.(string)
		if _, ok := value[name]; !ok {
			absent = append(absent, name)
		}
	}
	return absent
}

// known are the properties that a subschema names.
func known(rules map[string]any) string {
	properties, _ := rules["properties"].(map[string]any)
	var all []string
	for name := range properties {
		all = append(all, name)
	}
	if len(all) == 0 {
		return "none"
	}
	return names(all)
}

// alternatives explains what anyOf and oneOf refuse: by the only one of them that
// takes values of this type, if there is one.
func (e *explainer) alternatives(keyword, at string, value any, where path) error {
	node, _ := e.find(at + "/" + keyword)
	list, _ := node.([]any)
	var types, consts []any
	var likely []string
	for i, one := range list {
		rules := e.followed(one)
		own, several := rules["type"].([]any)
		if one := rules["type"]; !several && one != nil {
			own = []any{one}
		}
		if is, ok := rules["const"]; ok {
			consts = append(consts, is)
		}
		if types = append(types, own...); len(own) == 0 || isOf(value, own) {
			likely = append(likely, fmt.Sprintf("%s/%s/%d", at, keyword, i))
		}
	}
	switch {
	case len(list) > 0 && len(consts) == len(list):
		return where.says("want one of %s, not %s", literals(consts), show(value))
	case len(likely) == 0:
		return where.says("want %s, not %s", typeWords(types), show(value))
	case len(likely) == 1:
		if err, known := e.check(likely[0], value); known && err != nil {
			return e.explain(err, likely[0], value, where)
		}
	}
	return where.says("%s fits none of the %d forms of %s", show(value), len(list), keyword)
}

// followed is a subschema, or what it refers to.
func (e *explainer) followed(node any) map[string]any {
	for range MaxDepth {
		rules, _ := node.(map[string]any)
		ref, ok := rules["$ref"].(string)
		if !ok {
			return rules
		}
		node, _ = e.resolve(ref) // an error was found when the schema was parsed
	}
	return nil
}
