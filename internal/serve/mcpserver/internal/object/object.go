// Package object reads and changes JSON objects without touching what stays: numbers
// keep their digits, fields that nobody here knows their places.
package object

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fields are the values of an object as they were written.
type Fields map[string]json.RawMessage

// Of are those of an object; nil for anything else.
func Of(raw []byte) (fields Fields) {
	_ = json.Unmarshal(raw, &fields)
	return fields
}

// Worded is an error of reading JSON without Go's types, which say nothing to who wrote it.
func Worded(err error) error {
	wrong, is := errors.AsType[*json.UnmarshalTypeError](err)
	if !is {
		return err
	}
	return fmt.Errorf("it has a %s where %s has no place for one", wrong.Value, cmp.Or(wrong.Field, "it"))
}

// Is says whether JSON is an object.
func Is(raw json.RawMessage) bool { return Of(raw) != nil }

// Without are the fields but those of these names, in whatever case: there are decoders
// to which that is the same.
func (f Fields) Without(names ...string) Fields {
	f = maps.Clone(f)
	maps.DeleteFunc(f, func(field string, _ json.RawMessage) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(field, name) })
	})
	return f
}

// Over is a value with the fields in place of its own.
func (f Fields) Over(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil || len(f) == 0 {
		return raw, err
	}
	all := Of(raw)
	maps.Copy(all, f)
	return json.Marshal(all)
}

// Text is a field that is a text; empty if it is not, or not there.
func Text(raw []byte, name string) (text string) {
	_ = json.Unmarshal(Of(raw)[name], &text)
	return text
}

// With is an object with one field set, whatever the case in which it had it. The value
// must be one that can be written.
func With(raw []byte, name string, value any) json.RawMessage {
	fields := Of(raw).Without(name)
	if fields == nil {
		fields = Fields{}
	}
	fields[name], _ = json.Marshal(value)
	out, _ := json.Marshal(fields)
	return out
}

// Edited is an object in its order, with the values that change makes of its own: nil
// leaves one out. Any other value stays as it was.
func Edited(object json.RawMessage, change func(name string, value json.RawMessage) json.RawMessage) json.RawMessage {
	in := json.NewDecoder(bytes.NewReader(object))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return object
	}
	out := []byte("{")
	for in.More() {
		key, err := in.Token()
		var value json.RawMessage
		if err != nil || in.Decode(&value) != nil {
			return object
		}
		text, _ := key.(string)
		if value = change(text, value); value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		name, _ := json.Marshal(text) // text always can be
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}')
}
