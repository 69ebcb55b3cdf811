package schema

import (
	"fmt"
	"strings"
	"testing"
)

// patterns are subschemas with large ones, all different.
func patterns(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"pattern":"^x{900}.{%d}"}`, i+101)
	}
	return b.String()
}

func TestParse(t *testing.T) {
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	for name, test := range map[string]struct {
		schema string
		ok     bool
	}{
		"plain":           {`{"type":"object","properties":{"x":{"type":"string"}}}`, true},
		"definitions":     {`{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`, true},
		"recursive tree":  {`{"type":"object","properties":{"child":{"$ref":"#"}}}`, true},
		"itself":          {`{"$ref":"#"}`, false},
		"itself by allOf": {`{"allOf":[{"$ref":"#"}]}`, false},
		"doubling":        {`{"$ref":"#/$defs/a0","$defs":{` + doubling.String() + `"a40":{}}}`, false},
		"deep":            {strings.Repeat(`{"not":`, 9000) + `{}` + strings.Repeat(`}`, 9000), false},
		"elsewhere":       {`{"$ref":"https://example.com/schema"}`, false},
		"nowhere":         {`{"$ref":"#/a/b"}`, false},
		"large":           {`{"description":"` + strings.Repeat("x", MaxBytes) + `"}`, false},
		"no JSON":         {`{`, false},
		"no schema":       {`[]`, false},
		"no pattern":      {`{"pattern":"("}`, false},
		"pattern":         {`{"pattern":"^[a-z]{1,64}(\\.[a-z]{1,64}){0,10}$"}`, true},
		"large pattern":   {`{"pattern":"` + strings.Repeat("(?:.?){1000}", 11) + `"}`, false},
		"large name":      {`{"patternProperties":{"` + strings.Repeat("(?:.?){1000}", 11) + `":{}}}`, false},
		"many patterns":   {`{"anyOf":[{"pattern":"^x{900}.{100}"}` + patterns(200) + `]}`, false},
		"one, many times": {`{"anyOf":[{"pattern":"^x{900}.{100}"}` + strings.Repeat(`,{"pattern":"^x{900}.{100}"}`, 200) + `]}`, false},
		"some patterns":   {`{"anyOf":[{"pattern":"^[\\p{L}\\p{N}]{1,255}$"}` + patterns(60) + `]}`, true},
		"large classes":   {`{"anyOf":[{"pattern":"` + strings.Repeat(`\\pL`, 5000) + `"}]}`, false},
		"long pattern":    {`{"pattern":"` + strings.Repeat("a?", maxPattern) + `"}`, false},
		"many parts":      {`{"properties":{"x":{"enum":[` + strings.Repeat("{},", MaxParts) + `{}]}}}`, false},
		"unknown type":    {`{"type":"text"}`, false},
		"type as a name":  {`{"properties":{"type":{"enum":[{"type":"text"}]}},"const":{"type":"text"},"x-own":{"type":"text"}}`, true},
	} {
		resolved, err := Parse([]byte(test.schema))
		if (err == nil) != test.ok || (resolved == nil) != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A type that no value can have is refused wherever a schema stands, by its name and place.
func TestUnknownTypes(t *testing.T) {
	for schema, place := range map[string]string{
		`{"type":["null","text"]}`:                                         "#",
		`{"type":"object","properties":{"a":{"type":"text"}}}`:             "#/properties/a",
		`{"anyOf":[true,{"items":{"type":"text"}}]}`:                       "#/anyOf/1/items",
		`{"$defs":{"a":{"not":{"additionalProperties":{"type":"text"}}}}}`: "#/$defs/a/not/additionalProperties",
	} {
		want := `its type "text" at ` + place + " is not one of JSON Schema: array, boolean, integer, null, number, object, string"
		if _, err := Parse([]byte(schema)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", schema, err, want)
		}
	}
}

// A keyword with a value of another kind is refused by its name, place and value.
func TestMisformedKeywords(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string","required":true}}}`: `its "required" at #/properties/a cannot be true`,
		`{"anyOf":[{"items":{"minLength":"1"}}]}`:                                `its "minLength" at #/anyOf/0/items cannot be the string "1"`,
		`{"type":"object","properties":[]}`:                                      `its "properties" at # cannot be a list`,
		`{"properties":{"a":{"type":null}}}`:                                     `its "type" at #/properties/a cannot be null`,
		`{"properties":{"a":5}}`:                                                 `its "properties" at # cannot be an object`,
	} {
		if _, err := Parse([]byte(schema)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", schema, err, want)
		}
	}
}
