package schema

import (
	"reflect"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// What stands below a keyword of the library's.
const (
	data       = iota // or nothing
	subschemas        // one, or a list
	named             // subschemas by names, which are no keywords
)

// keywords are all that the library reads.
var keywords = sync.OnceValue(func() map[string]int {
	all := map[string]int{"type": data, "items": subschemas, "dependencies": named} // which no field has as a tag
	for _, field := range reflect.VisibleFields(reflect.TypeFor[jsonschema.Schema]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch one := reflect.TypeFor[*jsonschema.Schema](); {
		case name == "-":
		case field.Type == one, field.Type == reflect.SliceOf(one):
			all[name] = subschemas
		case field.Type.Kind() == reflect.Map:
			all[name] = named
		default:
			all[name] = data
		}
	}
	return all
})

// dropMisleading takes from a schema what encoding/json would read as a keyword in
// other letters, such as $REF: to JSON Schema it means nothing, and no bound counts
// it. It takes $id, too: a reference is a pointer into the document as it is, and the
// library would have it led elsewhere.
func dropMisleading(node any) (dropped bool) {
	switch n := node.(type) {
	case []any:
		for _, one := range n {
			dropped = dropMisleading(one) || dropped
		}
	case map[string]any:
		for key, part := range n {
			below, known := keywords()[key]
			switch {
			case key == "$id", !known && misspelt(key):
				delete(n, key)
				dropped = true
			case below == subschemas:
				dropped = dropMisleading(part) || dropped
			case below == named:
				byName, _ := part.(map[string]any)
				for _, one := range byName {
					dropped = dropMisleading(one) || dropped
				}
			}
		}
	}
	return dropped
}

func misspelt(key string) bool {
	for keyword := range keywords() {
		if strings.EqualFold(key, keyword) {
			return true
		}
	}
	return false
}

// isDraft7 says whether a schema of such a $schema is read as one of draft 7: that has
// the keywords of the drafts before, too.
func isDraft7(version string) bool { return strings.Contains(version, "json-schema.org/draft-0") }

// spelt is the $schema as the library knows it, which refuses every value by a schema of
// another. An unknown one is taken for the newest.
func spelt(version string, draft7 bool) string {
	switch {
	case draft7:
		return "http://json-schema.org/draft-07/schema#"
	case version == "":
		return ""
	}
	return "https://json-schema.org/draft/2020-12/schema"
}
