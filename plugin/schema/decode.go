package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// DecodeError rewrites an error of encoding/json in terms of JSON, for people and
// models who do not know Go's types. Other errors are returned unchanged. It does
// not name items of lists, as Decode does.
func DecodeError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		subject := "it"
		if wrong.Field != "" {
			subject = wrong.Field
		}
		return fmt.Errorf("%s is %s, want %s", ends(subject, maxPathBytes), valueName(wrong.Value), typeName(wrong.Type))
	}
	if broken, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("no valid JSON at byte %d: %w", broken.Offset, broken)
	}
	return err
}

// DecodeAny is json.Unmarshal into an any, as Validate needs it. The error for a
// number out of range names its place.
func DecodeAny(raw []byte) (value any, err error) {
	err = json.Unmarshal(raw, &value)
	if err == nil {
		return value, nil
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // which only a number is, of an any
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if decoder.Decode(&value) == nil {
			return nil, outOfRange(value, "")
		}
	}
	return nil, DecodeError(err)
}

// outOfRange finds the first number in a value that no float64 holds.
func outOfRange(value any, where path) error {
	switch v := value.(type) {
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return where.says("want a number%s, not %s", floatRange, show(v))
		}
	case []any:
		for i, one := range v {
			if err := outOfRange(one, where.item(i)); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, one := range v {
			if err := outOfRange(one, where.property(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// valueName is what stands in the text.
func valueName(value string) string {
	switch kind, literal, _ := strings.Cut(value, " "); kind {
	case "number":
		if literal == "" {
			return "a number"
		}
		return "the number " + ends(literal, maxShownBytes)
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	}
	return ends(value, maxShownBytes)
}

// typeName is what a Go type takes.
func typeName(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "a whole number in digits" + bounds(t)
	}
	return "another type"
}

// bounds are those of a type of integers.
func bounds(t reflect.Type) string {
	bits := t.Bits()
	if t.Kind() >= reflect.Uint {
		return fmt.Sprintf(", from 0 to %d", uint64(math.MaxUint64)>>(64-bits))
	}
	highest := int64(math.MaxInt64) >> (64 - bits)
	return fmt.Sprintf(", from %d to %d", -highest-1, highest)
}

var floatRange = fmt.Sprintf(" from %.4g to %.4g", -math.MaxFloat64, math.MaxFloat64)
