package httpapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/toolhost/toolhost/plugin/schema"
	"github.com/toolhost/toolhost/plugin/wirejson"
)

// document is the OpenAPI 3.1 description of the API. A test makes it from
// routes and the types of their bodies.
//
//go:embed openapi.json
var document []byte

// schemas check the bodies of requests, by the type that they are read into; nil
// is that of routes that read none.
type schemas map[reflect.Type]*schema.Schema

const componentRef = "#/components/schemas/"

// published are those of the document, so that bodies are checked by what clients
// can read.
var published = sync.OnceValues(func() (schemas, error) { return resolveSchemas(document) })

func resolveSchemas(document []byte) (schemas, error) {
	var parsed struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	// JSON Schema has another place for what is referred to.
	own := bytes.ReplaceAll(document, []byte(componentRef), []byte("#/$defs/"))
	if err := json.Unmarshal(own, &parsed); err != nil {
		return nil, fmt.Errorf("bug: the OpenAPI document cannot be read: %w", err)
	}
	all := schemas{}
	for _, route := range routes {
		if all[route.in] != nil {
			continue // another route takes the same
		}
		root := []byte(`{"type":"object","additionalProperties":false}`)
		if route.in != nil {
			root = bodySchema(route.in.Name(), parsed.Components.Schemas)
		}
		resolved, err := schema.Parse(root)
		if err != nil {
			return nil, fmt.Errorf("bug: the OpenAPI document: %s %s: %w", route.method, route.path, err)
		}
		all[route.in] = resolved
	}
	return all, nil
}

// bodySchema is a schema by itself, with those that it refers to: each that is resolved
// takes memory for all that it has.
func bodySchema(name string, all map[string]json.RawMessage) []byte {
	defs := map[string]json.RawMessage{}
	for names := []string{name}; len(names) > 0; names = names[1:] {
		if defs[names[0]] != nil {
			continue
		}
		defs[names[0]] = all[names[0]]
		for _, ref := range bytes.Split(all[names[0]], []byte(`"#/$defs/`))[1:] {
			to, _, _ := bytes.Cut(ref, []byte(`"`))
			names = append(names, string(to))
		}
	}
	raw, err := json.Marshal(defs)
	if err != nil {
		return nil // a bug, and not a schema
	}
	return fmt.Appendf(nil, `{"$ref":"#/$defs/%s","$defs":%s}`, name, raw)
}

// bodyLevels are the levels of objects and arrays that the API's own types have:
// what lies below is a tool's concern.
const bodyLevels = 3

// check says what of a body is not as it should be.
func (s schemas) check(in reflect.Type, body []byte) error {
	return s[in].Validate(wirejson.Outline(body, bodyLevels))
}
