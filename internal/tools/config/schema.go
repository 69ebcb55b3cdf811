package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the JSON Schema of toolhost.yaml for editors, made from the table
// of keys. It refuses less than Load does, which also looks at what belongs
// together.
func Schema() []byte {
	w := schemaWriter{places: map[*key]string{}}
	// Each of these refers to those before it for the keys that it shares.
	defs := map[string]*jsonschema.Schema{}
	for _, d := range []struct {
		name string
		keys []*key
	}{{"limits", hostLimitKeys}, {"profile", profileKeys}, {"question", questionKeys}, {"class", commonKeys}, {"serverTool", serverToolKeys}, {"tool", toolKeys}} {
		defs[d.name] = w.object(d.keys)
		w.define(d.name, d.keys)
	}
	for _, t := range types {
		defs["tool"].OneOf = append(defs["tool"].OneOf, &jsonschema.Schema{Required: []string{t}})
	}
	root := w.object(rootKeys)
	root.Schema, root.Title, root.Defs = "https://json-schema.org/draft/2020-12/schema", "toolhost.yaml", defs
	raw, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("bug: cannot write the schema of toolhost.yaml: " + err.Error())
	}
	return append(raw, '\n')
}

type schemaWriter struct {
	// places are those of keys that are defined already.
	places map[*key]string
}

func (w schemaWriter) define(name string, keys []*key) {
	for _, k := range keys {
		if w.places[k] == "" {
			w.places[k] = "#/$defs/" + name + "/properties/"
		}
	}
}

func (w schemaWriter) object(keys []*key) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: nothingMore()}
	add := func(name string, property *jsonschema.Schema) {
		s.Properties[name] = property
		s.PropertyOrder = append(s.PropertyOrder, name)
	}
	for _, k := range keys {
		add(k.name, w.property(k, k.name))
	}
	for _, k := range keys { // behind the names that are to be used
		if k.systemd != "" {
			add(k.systemd, w.property(k, k.systemd))
		}
	}
	return s
}

func (w schemaWriter) property(k *key, name string) *jsonschema.Schema {
	if place := w.places[k]; place != "" {
		return &jsonschema.Schema{Ref: place + name}
	}
	s := w.value(k)
	s.Description = k.description()
	if name != k.name {
		s.Description = "The same as " + k.name + ", which see; give one of them."
	}
	return s
}

// nothingMore matches no value.
func nothingMore() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// definition is the name of the definition that a key's mapping has.
func definition(k *key) string {
	switch {
	case k.name == "classes":
		return "class"
	case find(k.keys, ceilingKey.name) == ceilingKey:
		return "limits"
	case k.names == profileNames:
		return "profile"
	case k.names == questionNames:
		return "question"
	case k.names == accessNames:
		return ""
	case k.groups && k.only == TypeMCP:
		return "serverTool"
	case k.groups:
		return "tool"
	}
	return ""
}

// value is the schema of what stands behind a key, in all its forms.
func (w schemaWriter) value(k *key) *jsonschema.Schema {
	var forms []*jsonschema.Schema
	if k.kind != nil {
		forms = append(forms, k.kind.schema.CloneSchemas())
	}
	if k.short != "" {
		forms = append(forms, &jsonschema.Schema{Ref: w.places[find(k.keys, k.short)] + k.short})
	}
	if name := definition(k); name != "" {
		forms = append(forms, &jsonschema.Schema{Ref: "#/$defs/" + name})
	} else if k.keys != nil {
		forms = append(forms, w.object(k.keys))
	}
	s := forms[0]
	if len(forms) > 1 {
		s = &jsonschema.Schema{AnyOf: forms}
	}
	if k.names != nil {
		s = k.names.schema(s)
	}
	if k.kind == variableKind {
		s = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, listSchema(textSchema())}}
	}
	return s
}

// schema is a mapping from names to values.
func (n *names) schema(value *jsonschema.Schema) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: value}
	switch {
	case n.known != nil:
		s.AdditionalProperties, s.Properties, s.PropertyOrder = nothingMore(), map[string]*jsonschema.Schema{}, n.known
		for _, name := range n.known {
			s.Properties[name] = value.CloneSchemas()
		}
	case n.pattern != "":
		s.PropertyNames = &jsonschema.Schema{Pattern: n.pattern}
	}
	return s
}

func (k *key) description() string {
	text := strings.ToUpper(k.doc[:1]) + k.doc[1:] + "."
	if k.std != "" {
		text += " Default: " + strings.TrimSuffix(strings.TrimPrefix(k.std, "("), ")") + "."
	}
	if k.variable != "" {
		text += " $" + k.variable + " overrules the file."
	}
	return text
}

// Variables lists the TOOLHOST_* variables with the key that each sets.
func Variables() map[string]string {
	list := map[string]string{}
	walk(rootKeys, "", func(path string, k *key) {
		switch {
		case k.variable == profileVariable(profileNames.word):
			for _, name := range profileNames.known {
				list[profileVariable(name)] = strings.Replace(path, profileNames.word, name, 1)
			}
		case k.variable != "" && (list[k.variable] == "" || len(path) < len(list[k.variable])):
			list[k.variable] = path
		}
	})
	return list
}

// knownVariables lists them in order, TOOLHOST_CONFIG among them.
func knownVariables() []string {
	list := slices.AppendSeq([]string{configVariable}, maps.Keys(Variables()))
	slices.Sort(list)
	return list
}
