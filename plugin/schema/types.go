package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// checkTypes refuses a type that JSON does not have: no value would fit.
func checkTypes(root any) error {
	return eachSchema(root, "", func(schema map[string]any, way string) error {
		for _, one := range typesOf(schema["type"]) {
			if name, ok := one.(string); ok && typeNames[name] == "" {
				return fmt.Errorf("its type %q at #%s is not one of JSON Schema: %s", name, way, strings.Join(slices.Sorted(maps.Keys(typeNames)), ", "))
			}
		}
		return nil
	})
}

// misformed says which keyword the library cannot decode, and where: its own errors name
// neither, and spell out Go's types.
func misformed(root any) error {
	return eachSchema(root, "", func(schema map[string]any, way string) error {
		for _, key := range slices.Sorted(maps.Keys(schema)) {
			raw, _ := json.Marshal(map[string]any{key: schema[key]}) // of what was JSON
			if json.Unmarshal(raw, new(jsonschema.Schema)) != nil {
				return fmt.Errorf("its %q at #%s cannot be %s", key, way, show(schema[key]))
			}
		}
		return nil
	})
}

// eachSchema visits the subschemas of a node, and then the node. The way to it is a JSON
// pointer.
func eachSchema(node any, way string, visit func(schema map[string]any, way string) error) error {
	switch n := node.(type) {
	case []any:
		for i, one := range n {
			if err := eachSchema(one, fmt.Sprintf("%s/%d", way, i), visit); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(n)) {
			if err := eachBelow(key, n[key], way+"/"+key, visit); err != nil {
				return err
			}
		}
		return visit(n, way)
	}
	return nil
}

// eachBelow goes on with the subschemas of a keyword. What stands below others is data.
func eachBelow(key string, part any, way string, visit func(schema map[string]any, way string) error) error {
	switch keywords()[key] {
	case subschemas:
		return eachSchema(part, way, visit)
	case named:
		byName, _ := part.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			if err := eachSchema(byName[name], way+"/"+name, visit); err != nil {
				return err
			}
		}
	}
	return nil
}
