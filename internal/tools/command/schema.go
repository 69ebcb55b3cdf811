package command

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the JSON Schema of the arguments. Build demands a little more: it
// refuses NUL, a value that could be an option, and what is too long. Of a Spec
// with problems it describes as much as can be told.
func (s Spec) Schema() json.RawMessage {
	p := compile(s)
	schema := &jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, param := range p.order {
		schema.Properties[param.Name] = param.schema()
		schema.PropertyOrder = append(schema.PropertyOrder, param.Name)
		if param.required {
			schema.Required = append(schema.Required, param.Name)
		}
	}
	if name := s.TimeoutArgument; name != "" && schema.Properties[name] == nil {
		schema.Properties[name] = &jsonschema.Schema{
			Type: TypeInteger, Minimum: new(0.0), Description: "timeout of the call in milliseconds",
		}
		schema.PropertyOrder = append(schema.PropertyOrder, name)
	}
	raw, err := json.Marshal(schema)
	if err != nil { // an enum or default that is not JSON, which Check tells
		return json.RawMessage(`{"type":"object","not":{}}`)
	}
	return raw
}

func (p *param) schema() *jsonschema.Schema {
	scalar := &jsonschema.Schema{Type: p.kind, Minimum: p.Min, Maximum: p.Max}
	if p.pattern != nil {
		scalar.Pattern = p.Pattern
	}
	for _, value := range p.Enum {
		scalar.Enum = append(scalar.Enum, value)
	}
	schema := scalar
	if p.array {
		schema = &jsonschema.Schema{Type: TypeArray, Items: scalar}
	}
	schema.Description = p.Description
	schema.Default = p.Default
	return schema
}
