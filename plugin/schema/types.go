package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkTypes refuses a type that JSON does not have: no value would fit. The way to
// the node is a JSON pointer.
func checkTypes(node any, way string) error {
	switch n := node.(type) {
	case []any:
		for i, one := range n {
			if err := checkTypes(one, fmt.Sprintf("%s/%d", way, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, one := range typesOf(n["type"]) {
			if name, ok := one.(string); ok && typeNames[name] == "" {
				return fmt.Errorf("its type %q at #%s is not one of JSON Schema: %s", name, way, strings.Join(slices.Sorted(maps.Keys(typeNames)), ", "))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(n)) {
			if err := checkTypesBelow(key, n[key], way+"/"+key); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTypesBelow goes on with the subschemas of a keyword. What stands below others
// is data.
func checkTypesBelow(key string, part any, way string) error {
	switch keywords()[key] {
	case subschemas:
		return checkTypes(part, way)
	case named:
		byName, _ := part.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			if err := checkTypes(byName[name], way+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}
