package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what messages show.
const (
	maxShownBytes = 60
	maxShownItems = 10
)

// quote shortens a text and puts it in quotes.
func quote(text string) string {
	if len(text) <= maxShownBytes {
		return strconv.Quote(text)
	}
	return strconv.Quote(strings.ToValidUTF8(text[:maxShownBytes], "")) + "…"
}

// show is a value as encoding/json decodes it, in a few words.
func show(value any) string {
	switch v := value.(type) {
	case string:
		return "the string " + quote(v)
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case json.Number:
		return ends(string(v), maxShownBytes)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

// literals are values as JSON has them.
func literals(values []any) string {
	var shown []string
	for _, value := range values[:min(len(values), maxShownItems+1)] {
		if text, ok := value.(string); ok {
			shown = append(shown, quote(text))
			continue
		}
		raw, _ := json.Marshal(value) // of what was JSON
		shown = append(shown, ends(string(raw), maxShownBytes))
	}
	return list(shown, len(values))
}

// names are those of properties, in quotes.
func names(of []string) string {
	slices.Sort(of)
	var shown []string
	for _, name := range of[:min(len(of), maxShownItems+1)] {
		shown = append(shown, quote(name))
	}
	return list(shown, len(of))
}

// list shows the first of so many.
func list(shown []string, all int) string {
	if all > maxShownItems {
		return strings.Join(shown[:maxShownItems], ", ") + fmt.Sprintf(" or %d more", all-maxShownItems)
	}
	return strings.Join(shown, ", ")
}
