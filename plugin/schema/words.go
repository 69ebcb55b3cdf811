package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxRuleBytes bounds what a message says of a rule.
const maxRuleBytes = 240

// boundForms are what is said of a bound and of what was measured.
var boundForms = map[string]string{
	"minimum": "want at least %s, not %s", "maximum": "want at most %s, not %s",
	"exclusiveMinimum": "want more than %s, not %s", "exclusiveMaximum": "want less than %s, not %s",
	"multipleOf": "want a multiple of %s, not %s",
	"minLength":  "want at least %s characters, not the %s", "maxLength": "want at most %s characters, not the %s",
	"minItems": "want at least %s items, not %s", "maxItems": "want at most %s items, not %s",
	"minProperties": "want at least %s properties, not %s", "maxProperties": "want at most %s properties, not %s",
}

// number is a value that is one, as encoding/json decodes it.
func number(value any) (n float64, ok bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	}
	return 0, false
}

// measured is what a bound is for: a number, or the size of a string, list or
// object; ok is false where the bound is for other values.
func measured(keyword string, value any) (n float64, ok bool) {
	switch v := value.(type) {
	case string:
		return float64(utf8.RuneCountInString(v)), strings.HasSuffix(keyword, "Length")
	case []any:
		return float64(len(v)), strings.HasSuffix(keyword, "Items")
	case map[string]any:
		return float64(len(v)), strings.HasSuffix(keyword, "Properties")
	}
	n, ok = number(value)
	return n, ok && (strings.HasSuffix(keyword, "imum") || keyword == "multipleOf")
}

func outside(keyword string, n, bound float64) bool {
	switch {
	case keyword == "multipleOf":
		_, rest := math.Modf(n / bound)
		return rest != 0
	case keyword == "exclusiveMinimum":
		return n <= bound
	case keyword == "exclusiveMaximum":
		return n >= bound
	case strings.HasPrefix(keyword, "min"):
		return n < bound
	}
	return n > bound
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

// typesOf are the types that a subschema names.
func typesOf(bound any) []any {
	if types, several := bound.([]any); several || bound == nil {
		return types
	}
	return []any{bound}
}

func typeWords(bound any) string {
	types := typesOf(bound)
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

// isOf says whether a value is of one of the types.
func isOf(value any, types []any) bool {
	name := "null"
	switch value.(type) {
	case string:
		name = "string"
	case bool:
		name = "boolean"
	case []any:
		name = "array"
	case map[string]any:
		name = "object"
	default:
		if n, ok := number(value); ok {
			if name = "number"; n == math.Trunc(n) && slices.Contains(types, any("integer")) {
				return true
			}
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
