// Package fields tells the fields of a struct as encoding/json sees them.
package fields

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Field is one of a struct.
type Field struct {
	reflect.StructField
	// Key is its name in JSON.
	Key string
	// Maybe: it is promoted through a pointer, and absent where that is nil.
	Maybe bool
	// Quoted: its values are in quotes, by the option "string" of its tag.
	Quoted bool

	tagged  bool
	depth   int
	options []string
}

// Has says whether its tag has an option.
func (f Field) Has(option string) bool { return slices.Contains(f.options, option) }

// Of gives the fields of a struct in their order. Of several with one name it is
// the shallowest, of these the tagged one, and of several such none: Go's own
// rule, which goes by the names in Go, gives others.
func Of(t reflect.Type) []Field {
	found := all(t)
	slices.SortStableFunc(found, func(a, b Field) int { return cmp.Or(strings.Compare(a.Key, b.Key), byDominance(a, b)) })
	var visible []Field
	for i, field := range found {
		hidden := i > 0 && found[i-1].Key == field.Key
		tied := i+1 < len(found) && found[i+1].Key == field.Key && byDominance(field, found[i+1]) == 0
		if !hidden && !tied {
			visible = append(visible, field)
		}
	}
	slices.SortFunc(visible, func(a, b Field) int { return slices.Compare(a.Index, b.Index) })
	return visible
}

func byDominance(a, b Field) int {
	if a.tagged != b.tagged && a.depth == b.depth {
		if a.tagged {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.depth, b.depth)
}

// embedded is a struct whose fields are promoted.
type embedded struct {
	reflect.Type
	index []int
	maybe bool
}

// all are also those that others hide. A struct that is met twice in one depth
// gives its fields twice, so that they hide one another.
func all(t reflect.Type) (found []Field) {
	visited := map[reflect.Type]bool{}
	for depth, level := 0, []embedded{{Type: t}}; len(level) > 0; depth++ {
		var next []embedded
		for _, e := range level {
			visited[e.Type] = true
		}
		for _, e := range level {
			for own := range e.Fields() {
				own.Index = append(slices.Clone(e.index), own.Index...)
				field, inner := read(own, e.maybe)
				switch {
				case inner != nil && !visited[inner.Type]:
					next = append(next, *inner)
				case inner == nil && field.Key != "":
					field.depth = depth
					found = append(found, field)
				}
			}
		}
		level = next
	}
	return found
}

// read gives a field, or the struct whose fields it promotes, or neither.
func read(own reflect.StructField, maybe bool) (field Field, inner *embedded) {
	tag := own.Tag.Get("json")
	promotes := own.Anonymous && IsStruct(own.Type)
	if tag == "-" || !own.IsExported() && !promotes {
		return Field{}, nil
	}
	parts := strings.Split(tag, ",")
	if parts[0] == "" && promotes {
		return Field{}, &embedded{deref(own.Type), own.Index, maybe || own.Type.Kind() == reflect.Pointer}
	}
	field = Field{StructField: own, Key: cmp.Or(parts[0], own.Name), tagged: parts[0] != "", options: parts[1:], Maybe: maybe}
	field.Quoted = field.Has("string") && quotable(own.Type)
	return field, nil
}

// IsStruct is true of pointers to structs, too.
func IsStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

func deref(t reflect.Type) reflect.Type {
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func quotable(t reflect.Type) bool {
	switch kind := deref(t).Kind(); kind {
	case reflect.Bool, reflect.String:
		return true
	default:
		return kind >= reflect.Int && kind <= reflect.Float64
	}
}
