package text

import (
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
)

// YAML writes a string as YAML, quoted unless it can be read in no other way.
func YAML(s string) string {
	if plainText(s) {
		return s
	}
	return yamlQuote(s)
}

// YAMLKey is YAML for a key, which a quantity cannot be.
func YAMLKey(name string) string {
	if quantity().MatchString(name) {
		return yamlQuote(name)
	}
	return YAML(name)
}

// YAMLList is a list of strings on one line.
func YAMLList(words []string) string {
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = YAML(word)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// quantity is a number with a unit, which cannot be read as a number.
var quantity = lazy.Regexp(`^[0-9]+(\.[0-9]+)?([KMGTP]i?B?|B|%|ns|us|ms|s|m|h)$`)

// plainText says whether s needs no quotes in a flow collection: a quantity, or
// a letter, / or _ and then letters, digits and marks that mean nothing in YAML.
func plainText(s string) bool {
	if quantity().MatchString(s) {
		return true
	}
	const marks = "_./+@=-"
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		first := letter || r == '/' || r == '_'
		if i == 0 && !first || !first && !(r >= '0' && r <= '9') && !strings.ContainsRune(marks, r) {
			return false
		}
	}
	switch strings.ToLower(s) {
	case "", "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return false
	}
	return true
}

// yamlQuote uses escapes that YAML has in common with Go.
func yamlQuote(s string) string {
	if strings.ToValidUTF8(s, "") == s {
		return strconv.Quote(s)
	}
	return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD"))
}
