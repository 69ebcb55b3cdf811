package plugin

import (
	"reflect"
	"strings"
)

// filled is a result whose nil slices are empty ones, for encoding/json would write
// null and the schema says array. What the tool holds is left as it is. Types with
// a JSON form of their own are theirs to write.
func filled(result any) any {
	v := reflect.ValueOf(result)
	if !v.IsValid() || !hasLists(v.Type(), map[reflect.Type]bool{}) {
		return result
	}
	own := reflect.New(v.Type()).Elem()
	own.Set(v)
	fill(own)
	return own.Interface()
}

// notInJSON is the tag of fields that encoding/json passes over; they may hold anything,
// also what leads back to itself or belongs to others.
const notInJSON = "-"

// hasLists says whether fill may find something in values of a type.
func hasLists(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || hasOwnForm(t) {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Slice:
		return true
	case reflect.Pointer, reflect.Map, reflect.Array:
		return hasLists(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("json") != notInJSON && hasLists(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// hasOwnForm says that a type is written by methods of its own, or as a string.
func hasOwnForm(t reflect.Type) bool {
	f := forms{direction: output}
	return asJSON[t] != nil || f.own(t) != nil
}

// fill works in place, on copies of all that it changes.
func fill(v reflect.Value) {
	if !v.CanSet() && v.Kind() != reflect.Struct || !hasLists(v.Type(), map[reflect.Type]bool{}) {
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		v.Set(list)
		fillItems(v)
	case reflect.Array:
		fillItems(v)
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			fill(own.Elem())
			v.Set(own)
		}
	case reflect.Map:
		fillMap(v)
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			tag := field.Tag.Get("json")
			_, options, _ := strings.Cut(tag, ",")
			if tag != notInJSON && (!v.Field(i).IsZero() || !strings.Contains(options, "omitzero")) {
				fill(part(v, field))
			}
		}
	}
}

// part is a field of a copy. An embedded pointer to an unexported struct cannot be set
// otherwise, and encoding/json follows it.
func part(v reflect.Value, field reflect.StructField) reflect.Value {
	own := v.FieldByIndex(field.Index)
	if field.Anonymous && !own.CanSet() && field.Type.Kind() == reflect.Pointer && field.Type.Elem().Kind() == reflect.Struct {
		return reflect.NewAt(field.Type, own.Addr().UnsafePointer()).Elem()
	}
	return own
}

func fillItems(v reflect.Value) {
	for i := range v.Len() {
		fill(v.Index(i))
	}
}

func fillMap(v reflect.Value) {
	if v.IsNil() {
		return
	}
	own := reflect.MakeMapWithSize(v.Type(), v.Len())
	for item := v.MapRange(); item.Next(); {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(item.Value())
		fill(value)
		own.SetMapIndex(item.Key(), value)
	}
	v.Set(own)
}
