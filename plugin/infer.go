package plugin

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/plugin/internal/fields"
)

// asJSON are the types of the standard library that encoding/json treats unlike
// their kind.
var asJSON = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[[]byte]():          base64Schema,
	numberType:                         {Type: "number"},
	reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[slog.Level]():      {Type: "string"},
	reflect.TypeFor[big.Int]():         {Type: "integer"},
	reflect.TypeFor[big.Float]():       {Type: "string"},
	reflect.TypeFor[big.Rat]():         {Type: "string"},
}

var numberType = reflect.TypeFor[json.Number]()

// byPointer are those of them whose methods are the pointer's.
var byPointer = map[reflect.Type]bool{reflect.TypeFor[big.Int](): true, reflect.TypeFor[big.Float](): true, reflect.TypeFor[big.Rat](): true}

var base64Schema = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}

// direction is where values of a type go, and by which methods of the type.
type direction struct {
	what       string
	json, text reflect.Type
	// addressed: methods of the pointer count for every value.
	addressed bool
}

var (
	input  = direction{"argument", reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](), true}
	output = direction{"result", reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler](), false}
)

// infer makes the JSON Schema of a type. A type with a text form of its own is a
// string, one with a JSON form of its own may be anything.
func infer(t reflect.Type, d direction) (*jsonschema.Schema, error) {
	f := &forms{direction: d, schemas: maps.Clone(asJSON), seen: map[reflect.Type]bool{}, around: map[reflect.Type]bool{}}
	if d.addressed && reflect.PointerTo(t).Implements(d.json) {
		f.byItself = true
		f.children(t, "") // arguments are an object of its fields, however it reads them
	} else {
		f.visit(t, "")
	}
	if f.err != nil {
		return nil, f.err
	}
	s, err := f.schema(t)
	if err == nil && t.Kind() == reflect.Map && f.schemas[t] == nil {
		s.Type, s.Types = "object", nil // as hosts and clients want it; see encode
	}
	return s, err
}

// forms finds the types whose JSON is not that of their fields or their kind.
type forms struct {
	direction
	schemas map[reflect.Type]*jsonschema.Schema
	seen    map[reflect.Type]bool
	around  map[reflect.Type]bool // where visit is
	// byItself: the whole type reads its JSON, and may know what goes into an interface.
	byItself bool
	err      error
}

const byHand = "give the schema by hand with NewRawTool"

// visit is at a type that is at a place in the JSON, "" for all of it.
func (f *forms) visit(t reflect.Type, place string) {
	if f.around[t] {
		f.refuse(place, "%v contains itself, for which no schema is made: "+byHand, t)
		return
	}
	if f.seen[t] || asJSON[t] != nil {
		return
	}
	f.seen[t] = true
	if own := f.own(t); own != nil {
		f.schemas[t] = own
		return
	}
	f.around[t] = true
	f.children(t, place)
	delete(f.around, t)
}

// own is the schema of a type that has methods of the direction; nil without.
func (f *forms) own(t reflect.Type) *jsonschema.Schema {
	pointer := reflect.PointerTo(t)
	switch always := f.addressed || t.Implements(f.text); {
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Interface:
		return nil
	case pointer.Implements(f.json):
		return &jsonschema.Schema{}
	case pointer.Implements(f.text) && always:
		return &jsonschema.Schema{Type: "string"}
	case pointer.Implements(f.text): // and whether it is asked depends on the way to the value
		return &jsonschema.Schema{}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && f.own(t.Elem()) == nil:
		return base64Schema
	}
	return nil
}

// children visits what a type is made of.
func (f *forms) children(t reflect.Type, place string) {
	switch t.Kind() {
	case reflect.Pointer:
		f.visit(t.Elem(), place)
	case reflect.Slice, reflect.Array:
		f.visit(t.Elem(), place+"[]")
	case reflect.Map:
		if key := t.Key(); key.Kind() != reflect.String && !key.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			f.refuse(place, "%v has keys of type %v: want strings, or a type with a text form (MarshalText)", t, key)
		}
		f.visit(t.Elem(), place+"[]")
	case reflect.Struct:
		f.err = cmp.Or(f.err, namedEmbedding(t))
		for _, field := range fields.Of(t) {
			f.visit(field.Type, strings.TrimPrefix(place+"."+field.Key, "."))
		}
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		f.refuse(place, "%v has no form in JSON", t)
	case reflect.Interface:
		f.asInterface(t, place)
	}
}

// asInterface refuses what encoding/json cannot read, and what it writes without its text.
func (f *forms) asInterface(t reflect.Type, place string) {
	isError := t.Implements(reflect.TypeFor[error]()) && !t.Implements(f.json) && !t.Implements(f.text)
	switch {
	case f.addressed && !f.byItself && t.NumMethod() > 0:
		f.refuse(place, "%v is an interface with methods, which no JSON can be read into: want a type without, or "+byHand, t)
	case !f.addressed && isError:
		f.refuse(place, "%v is written as {}, without its text: want a string, or "+byHand, t)
	}
}

func (f *forms) refuse(place, format string, args ...any) {
	if place != "" {
		format = "field " + place + ": " + format
	}
	f.err = cmp.Or(f.err, fmt.Errorf(format, args...))
}

// namedEmbedding refuses what encoding/json takes for one field, and the
// library for the fields of what is embedded.
func namedEmbedding(t reflect.Type) error {
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.Anonymous || name == "-" || name == "" && (fields.IsStruct(field.Type) || !field.IsExported()) {
			continue
		}
		return fmt.Errorf("%v embeds %v, which is one JSON field %q: give it a name in Go, too", t, field.Type, cmp.Or(name, field.Name))
	}
	return nil
}

// schema is the library's, mended.
func (f *forms) schema(t reflect.Type) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: f.schemas})
	if err != nil {
		return nil, err
	}
	return s, f.mend(t, s)
}

// mend corrects what the library makes of slices and maps, of the fields
// of structs, and of a pointer to what may be anything: null alone.
func (f *forms) mend(t reflect.Type, s *jsonschema.Schema) error {
	pointer := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case f.schemas[t] != nil:
		if slices.Equal(s.Types, []string{"null"}) {
			s.Types = nil
		}
		if !f.addressed && !pointer && byPointer[t] {
			*s = jsonschema.Schema{} // whether its methods are asked depends on the way to the value
		}
	case t.Kind() == reflect.Slice:
		if !pointer { // a nil one is written as an empty one; see filled
			s.Type, s.Types = "array", nil
		}
		return f.mend(t.Elem(), s.Items)
	case t.Kind() == reflect.Array:
		return f.mend(t.Elem(), s.Items)
	case t.Kind() == reflect.Map:
		if s.Type == "object" {
			s.Type, s.Types = "", []string{"null", "object"}
		}
		return f.mend(t.Elem(), s.AdditionalProperties)
	case t.Kind() == reflect.Struct:
		return f.mendStruct(t, s)
	}
	return nil
}

// mendStruct goes by the fields that encoding/json sees.
func (f *forms) mendStruct(t reflect.Type, s *jsonschema.Schema) error {
	s.Properties, s.PropertyOrder, s.Required = map[string]*jsonschema.Schema{}, nil, nil
	for _, field := range fields.Of(t) {
		property, err := f.schema(field.Type)
		if err != nil {
			return err
		}
		if f.quotes(field) {
			property = quotedSchema(field.Type)
		}
		property.Description = field.Tag.Get("jsonschema")
		s.Properties[field.Key] = property
		s.PropertyOrder = append(s.PropertyOrder, field.Key)
		if absent := field.Has("omitempty") || field.Has("omitzero") || field.Maybe && !f.addressed; !absent {
			s.Required = append(s.Required, field.Key)
		}
	}
	return nil
}

// quotes says whether encoding/json puts the values of a field in quotes.
func (f *forms) quotes(field fields.Field) bool {
	t := field.Type
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return field.Quoted && (f.schemas[t] == nil || t == numberType)
}

func quotedSchema(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	if t.Kind() == reflect.Pointer {
		s.Type, s.Types, t = "", []string{"null", "string"}, t.Elem()
	}
	s.Pattern = quotedForms[t.Kind()]
	if t == numberType {
		s.Pattern = quotedNumber
	}
	return s
}

const (
	quotedInteger  = `^-?(0|[1-9][0-9]*)$`
	quotedUnsigned = `^(0|[1-9][0-9]*)$`
	quotedNumber   = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`
)

// quotedForms are the kinds that encoding/json puts in quotes, and what is then
// between these.
var quotedForms = map[reflect.Kind]string{
	reflect.Bool: "^(true|false)$", reflect.String: `^".*"$`,
	reflect.Int: quotedInteger, reflect.Int8: quotedInteger, reflect.Int16: quotedInteger, reflect.Int32: quotedInteger, reflect.Int64: quotedInteger,
	reflect.Uint: quotedUnsigned, reflect.Uint8: quotedUnsigned, reflect.Uint16: quotedUnsigned, reflect.Uint32: quotedUnsigned, reflect.Uint64: quotedUnsigned,
	reflect.Uintptr: quotedUnsigned, reflect.Float32: quotedNumber, reflect.Float64: quotedNumber,
}
