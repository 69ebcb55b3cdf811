package terminal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/plugin/schema"
)

// form is what a schema asks for, in the order in which the schema has it: the
// fields of a flat object, or one field for the whole value.
type form struct {
	schema json.RawMessage
	fields []field
	object bool
	// empty: the object has no properties, and only a yes is asked for.
	empty bool
}

// field is one value. Its schema's type is kind; json is any value.
type field struct {
	name, title, about string
	kind               string
	several            bool // any number of the options
	options            []option
	preset             json.RawMessage // what an empty line means; nil is nothing
	required, secret   bool
	format             string
	schema             json.RawMessage
}

type option struct {
	value json.RawMessage
	title string
}

// property is what a form understands of a JSON Schema; oneOf, and anyOf where several
// may be chosen, is how MCP gives titles to choices.
type property struct {
	Type        string            `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"`
	Enum        []json.RawMessage `json:"enum"`
	EnumNames   []string          `json:"enumNames"`
	OneOf       []choice          `json:"oneOf"`
	AnyOf       []choice          `json:"anyOf"`
	Items       json.RawMessage   `json:"items"`
	Format      string            `json:"format"`
	Properties  json.RawMessage   `json:"properties"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	Required    []string          `json:"required"`
}

type choice struct {
	Const json.RawMessage `json:"const"`
	Title string          `json:"title"`
}

// maxFields bounds a form that is asked field by field.
const maxFields = 50

// readForm never fails: what it does not understand is asked for as JSON.
func readForm(q api.Interaction) form {
	whole := field{kind: "json", required: true, secret: q.Secret, preset: q.Default, schema: q.Schema}
	if len(q.Schema) == 0 { // a secret
		whole.kind = "string"
		return form{fields: []field{whole}}
	}
	f := form{schema: q.Schema, fields: []field{whole}}
	if one, ok := readField(q.Schema); ok {
		one.required, one.secret = true, q.Secret
		f.fields = []field{one}
		return f
	}
	if fields, ok := readObject(q.Schema, q.Secret); ok {
		f.fields, f.object, f.empty = fields, true, len(fields) == 0
	}
	if f.empty {
		f.fields = []field{{kind: "boolean", required: true}}
	}
	return f
}

// readObject takes a flat object apart; false for anything else, such as one whose
// properties have any names.
func readObject(raw json.RawMessage, secret bool) (fields []field, ok bool) {
	var p property
	if json.Unmarshal(raw, &p) != nil || p.Type != "object" {
		return nil, false
	}
	in := json.NewDecoder(bytes.NewReader(p.Properties))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for in.More() {
		key, err := in.Token()
		var value json.RawMessage
		if err != nil || in.Decode(&value) != nil {
			return nil, false
		}
		one, ok := readField(value)
		if !ok || len(fields) == maxFields {
			return nil, false
		}
		one.name, _ = key.(string)
		one.required, one.secret = slices.Contains(p.Required, one.name), secret
		fields = append(fields, one)
	}
	return fields, len(fields) > 0 || len(p.Additional) == 0 || string(p.Additional) == "false"
}

// readField reads the schema of one simple value; false if it is of another.
func readField(raw json.RawMessage) (field, bool) {
	var p property
	if json.Unmarshal(raw, &p) != nil {
		return field{}, false
	}
	if _, err := schema.Parse(raw); err != nil {
		return field{}, false
	}
	f := field{kind: p.Type, title: p.Title, about: p.Description, preset: p.Default, format: p.Format, schema: raw}
	chosen := p
	if p.Type == "array" {
		f.several, chosen = true, property{}
		if json.Unmarshal(p.Items, &chosen) != nil {
			return field{}, false
		}
	}
	options, ok := chosen.choices(f.several)
	if f.options = options; !ok {
		return field{}, false
	}
	switch p.Type {
	case "string", "number", "integer", "boolean":
		return f, true
	}
	return f, (p.Type == "" || f.several) && len(f.options) > 0
}

// choices are the values that can be chosen, if any; false where one is not a value.
func (p property) choices(several bool) (list []option, ok bool) {
	for i, value := range p.Enum {
		list = append(list, option{value: value, title: nth(p.EnumNames, i)})
	}
	titled := p.OneOf
	if several {
		titled = append(titled, p.AnyOf...)
	}
	for _, c := range titled {
		if len(c.Const) == 0 {
			return nil, false
		}
		list = append(list, option{value: c.Const, title: c.Title})
	}
	return list, true
}

func nth(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// help is what is shown above the field's prompt.
func (f field) help() string {
	var b strings.Builder
	if f.about != "" {
		fmt.Fprintf(&b, "  %s\n", OneLine(cut(f.about)))
	}
	for i, o := range f.options {
		line := fmt.Sprintf("    %d) %s", i+1, OneLine(cut(plain(o.value))))
		if o.title != "" {
			line += "  " + OneLine(cut(o.title))
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// label is the prompt: what is wanted, and what an empty line means.
func (f field) label() string {
	text := OneLine(cut(cmp.Or(f.title, f.name, "answer")))
	if f.secret {
		text += " (not shown)"
	}
	switch {
	case f.several:
		text += " (any of them, with commas between)"
	case f.format != "" && f.kind == "string":
		text += " (" + OneLine(cut(f.format)) + ")"
	case f.kind == "boolean" && len(f.options) == 0:
		text += " [y/n]"
	case f.kind == "json":
		text += " (a JSON value)"
	case f.kind == "number" || f.kind == "integer":
		text += " (" + f.kind + ")"
	}
	switch {
	case f.preset != nil:
		text += " [" + OneLine(cut(f.shownPreset())) + "]"
	case !f.required:
		text += " (may be left empty)"
	}
	return strings.TrimSpace(text)
}

// shownPreset is the default as it would be typed.
func (f field) shownPreset() string {
	var list []json.RawMessage
	if !f.several || json.Unmarshal(f.preset, &list) != nil {
		return plain(f.preset)
	}
	texts := []string{}
	for _, one := range list {
		texts = append(texts, plain(one))
	}
	return strings.Join(texts, ", ")
}

// parse reads what was typed; complaint says what was wrong with it. A nil value
// is that of a field that is left out.
func (f field) parse(text string) (value json.RawMessage, complaint string) {
	if text == "" {
		return f.preset, ""
	}
	value, complaint = f.value(text)
	if complaint != "" || len(f.schema) == 0 {
		return value, complaint
	}
	if err := fits(f.schema, value); err != nil {
		if f.secret {
			return nil, "that is not what is asked for"
		}
		return nil, "that does not fit: " + err.Error()
	}
	return value, ""
}

func (f field) value(text string) (value json.RawMessage, complaint string) {
	if f.several {
		return f.chooseAll(text)
	}
	if len(f.options) > 0 {
		return f.choose(text)
	}
	trimmed := strings.TrimSpace(text)
	switch f.kind {
	case "string":
		value, _ = json.Marshal(text)
		return value, ""
	case "boolean":
		switch strings.ToLower(trimmed) {
		case "y", "yes", "true":
			return json.RawMessage("true"), ""
		case "n", "no", "false":
			return json.RawMessage("false"), ""
		}
		return nil, explainTwo
	}
	if !json.Valid([]byte(trimmed)) {
		if f.kind == "json" {
			return nil, `that is not a JSON value: text needs quotes, as in "text"`
		}
		return nil, "that is not a number"
	}
	return json.RawMessage(trimmed), ""
}

// choose takes an option by its text, its title or its number.
func (f field) choose(text string) (json.RawMessage, string) {
	text = strings.TrimSpace(text)
	for _, o := range f.options {
		if text == plain(o.value) || text == o.title {
			return o.value, ""
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(f.options) {
		return f.options[n-1].value, ""
	}
	return nil, fmt.Sprintf("please give one of them, or its number from 1 to %d", len(f.options))
}

// chooseAll takes a list of options, each once. A title may have a comma in it.
func (f field) chooseAll(text string) (json.RawMessage, string) {
	if one, complaint := f.choose(text); complaint == "" {
		return asList([]json.RawMessage{one}), ""
	}
	list := []json.RawMessage{}
	for part := range strings.SplitSeq(text, ",") {
		one, complaint := f.choose(part)
		if complaint != "" {
			return nil, "please give some of them, or their numbers from 1 to " + strconv.Itoa(len(f.options)) + ", with commas between"
		}
		if !slices.ContainsFunc(list, func(other json.RawMessage) bool { return bytes.Equal(one, other) }) {
			list = append(list, one)
		}
	}
	return asList(list), ""
}

func asList(list []json.RawMessage) json.RawMessage {
	raw, _ := json.Marshal(list) // they were read as JSON
	return raw
}

// whole puts the values together and holds them against the schema.
func (f form) whole(values map[string]json.RawMessage) (json.RawMessage, error) {
	switch {
	case f.empty && string(values[""]) != "true", !f.object && len(values) == 0:
		return nil, errNo
	case f.empty:
		values = map[string]json.RawMessage{}
	case !f.object:
		return values[""], nil
	}
	value, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	return value, fits(f.schema, value)
}

// fits holds a value against a schema, if that can be done.
func fits(raw, value json.RawMessage) error {
	parsed, err := schema.Parse(raw)
	if err != nil {
		return nil
	}
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		return err
	}
	return parsed.ValidateAnswer(decoded)
}

// plain is a text without its quotes, and any other value as it is.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
