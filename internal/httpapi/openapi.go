package httpapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"github.com/toolhost/toolhost/plugin/schema"
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

// resolveSchemas takes them from the document, so that what is checked is what
// is promised.
func resolveSchemas(document []byte) (schemas, error) {
	var parsed struct {
		Components struct {
			Schemas json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	// JSON Schema has another place for what is referred to.
	own := bytes.ReplaceAll(document, []byte(componentRef), []byte("#/$defs/"))
	if err := json.Unmarshal(own, &parsed); err != nil {
		return nil, fmt.Errorf("bug: the OpenAPI document cannot be read: %w", err)
	}
	all := schemas{}
	for _, route := range routes {
		root := []byte(`{"type":"object","additionalProperties":false}`)
		if route.in != nil {
			root = fmt.Appendf(nil, `{"$ref":"#/$defs/%s","$defs":%s}`, route.in.Name(), parsed.Components.Schemas)
		}
		resolved, err := schema.Parse(root)
		if err != nil {
			return nil, fmt.Errorf("bug: the OpenAPI document: %s %s: %w", route.method, route.path, err)
		}
		all[route.in] = resolved
	}
	return all, nil
}

// check says what of a body is not as it should be.
func (s schemas) check(in reflect.Type, body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // a number that no float64 holds is a call's own matter
	var value any
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	return s[in].Validate(floats(value))
}

// floats makes numbers of a decoded value what validation takes, the largest
// there are of those beyond.
func floats(value any) any {
	switch v := value.(type) {
	case json.Number:
		n, _ := v.Float64() // beyond its range an infinity
		return min(max(n, -math.MaxFloat64), math.MaxFloat64)
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = floats(v[key])
		}
	}
	return value
}
