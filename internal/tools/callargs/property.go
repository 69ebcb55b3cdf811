package callargs

import (
	"encoding/json"
	"slices"
)

// Property is what a schema says of one of its top-level properties. The schemas
// true and false say nothing of it.
type Property struct {
	Description string          `json:"description"`
	Type        json.RawMessage `json:"type"`
	Items       json.RawMessage `json:"items"`
	Default     json.RawMessage `json:"default"`
	// AnyOf, OneOf and AllOf have schemas that it must match besides.
	AnyOf []Property `json:"anyOf"`
	OneOf []Property `json:"oneOf"`
	AllOf []Property `json:"allOf"`
}

// UnmarshalJSON takes true and false, too.
func (p *Property) UnmarshalJSON(raw []byte) error {
	if string(raw) == "true" || string(raw) == "false" {
		return nil
	}
	type object Property
	return json.Unmarshal(raw, (*object)(p))
}

// Types are its types, those of its alternatives where it has none itself; none means any.
func (p Property) Types() []string {
	if own := typesOf(p.Type); own != nil {
		return own
	}
	for _, all := range p.AllOf {
		if types := all.Types(); types != nil {
			return types
		}
	}
	var types []string
	for _, one := range slices.Concat(p.AnyOf, p.OneOf) {
		some := one.Types()
		if some == nil { // any, text among them
			return nil
		}
		types = append(types, some...)
	}
	return types
}

// items is what it says of a list's items, itself or in one of its alternatives.
func (p Property) items() (item Property) {
	_ = json.Unmarshal(p.Items, &item) // without items there is nothing to read
	for _, one := range slices.Concat(p.AllOf, p.AnyOf, p.OneOf) {
		if item.Types() == nil {
			item = one.items()
		}
	}
	return item
}

// Properties reads a schema's top-level properties.
func Properties(schema []byte) map[string]Property {
	var s struct {
		Properties map[string]Property `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	return s.Properties
}

// Types reads the types of a schema's top-level properties.
func Types(schema []byte) map[string][]string {
	types := map[string][]string{}
	for name, property := range Properties(schema) {
		types[name] = property.Types()
	}
	return types
}

// itemTypes reads the types of the items of a schema's top-level arrays.
func itemTypes(schema []byte) map[string][]string {
	types := map[string][]string{}
	for name, property := range Properties(schema) {
		types[name] = property.items().Types()
	}
	return types
}

// typesOf reads a schema's type, which is one name or a list of them.
func typesOf(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(raw, &many)
	return many
}
