package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/plugin/internal/fields"
)

// Decode is json.Unmarshal with errors for people who do not know the Go type:
// they name the place in the JSON and what is wanted there, such as
// nodes[1].sub.a: want a number, not the string "x".
func Decode(raw []byte, into any) error {
	err := json.Unmarshal(raw, into)
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return DecodeError(err)
	}
	return wrongPart(raw, reflect.TypeOf(into).Elem(), "", err)
}

var (
	jsonForm = reflect.TypeFor[json.Unmarshaler]()
	textForm = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// wrongPart finds the part of JSON that does not decode into a type, which the
// whole did not.
func wrongPart(raw json.RawMessage, t reflect.Type, where path, err error) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	own := reflect.PointerTo(t).Implements(jsonForm) && where != "" || reflect.PointerTo(t).Implements(textForm)
	for _, one := range partsOf(raw, t, where, own) {
		if err := one.decode(); err != nil {
			return wrongPart(one.raw, one.into, one.where, err)
		}
	}
	return wrongValue(raw, t, where, err)
}

// rawPart is JSON for a value within another.
type rawPart struct {
	raw    json.RawMessage
	into   reflect.Type
	where  path
	quoted bool
}

func (p *rawPart) decode() error {
	if p.quoted {
		var text *string
		if err := json.Unmarshal(p.raw, &text); err != nil || text == nil {
			return err
		}
		p.raw = json.RawMessage(*text)
		if !json.Valid(p.raw) {
			p.raw, _ = json.Marshal(*text)
		}
	}
	return json.Unmarshal(p.raw, reflect.New(p.into).Interface())
}

// partsOf are those of JSON for a type without a form of its own; the whole of
// arguments has fields in any case.
func partsOf(raw json.RawMessage, t reflect.Type, where path, own bool) (list []rawPart) {
	var items []json.RawMessage
	var members map[string]json.RawMessage
	switch kind := t.Kind(); {
	case own:
	case (kind == reflect.Slice || kind == reflect.Array) && json.Unmarshal(raw, &items) == nil:
		for i, item := range items {
			list = append(list, rawPart{raw: item, into: t.Elem(), where: where.item(i)})
		}
	case kind == reflect.Map && json.Unmarshal(raw, &members) == nil:
		for _, name := range slices.Sorted(maps.Keys(members)) {
			list = append(list, rawPart{raw: members[name], into: t.Elem(), where: where.property(name)})
		}
	case kind == reflect.Struct && json.Unmarshal(raw, &members) == nil:
		all := fields.Of(t)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if field, ok := fieldFor(all, name); ok {
				list = append(list, rawPart{members[name], field.Type, where.property(name), field.Quoted})
			}
		}
	}
	return list
}

// fieldFor is the field that encoding/json takes for a name.
func fieldFor(all []fields.Field, name string) (fields.Field, bool) {
	i := slices.IndexFunc(all, func(f fields.Field) bool { return f.Key == name })
	if i < 0 {
		i = slices.IndexFunc(all, func(f fields.Field) bool { return strings.EqualFold(f.Key, name) })
	}
	if i < 0 {
		return fields.Field{}, false
	}
	return all[i], true
}

// wrongValue says what is wrong with JSON that has no part to blame.
func wrongValue(raw json.RawMessage, t reflect.Type, where path, err error) error {
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if e := decoder.Decode(&value); e != nil {
		return DecodeError(err)
	}
	_, isText := value.(string)
	_, isNumber := value.(json.Number)
	wrong, isType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case t == reflect.TypeFor[time.Time]():
		return where.says("want a time such as 2006-01-02T15:04:05Z (RFC 3339), not %s", show(value))
	case t.Kind() == reflect.Interface && outOfRange(value, where) != nil:
		return outOfRange(value, where)
	case isText && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !reflect.PointerTo(t).Implements(textForm):
		return where.says("want bytes in base64, not %s", show(value))
	case isType && wrong.Field != "": // within a form of its own
		return where.says("%v", DecodeError(err))
	case isNumber && (t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64):
		return where.says("want a number%s, not %s", floatBounds(t), show(value))
	case isType:
		return where.says("want %s, not %s", typeName(wrong.Type), show(value))
	}
	return where.says("%s does not do: %s", show(value), ends(err.Error(), maxRuleBytes))
}

func floatBounds(t reflect.Type) string {
	if t.Kind() == reflect.Float32 {
		return fmt.Sprintf(" from %.4g to %.4g", -math.MaxFloat32, math.MaxFloat32)
	}
	return floatRange
}
