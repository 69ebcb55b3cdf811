package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// A key that only encoding/json would take for a keyword is not a keyword, in any subschema:
// it neither applies nor costs anything.
func TestKeywordsInOtherLetters(t *testing.T) {
	dear := `"PATTERN":"` + strings.Repeat("(?:.?){1000}", 1600) + `"`
	for _, schema := range []string{
		`{"$REF":"#"}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$Ref":"#"}}}`,
		`{"ALLOF":[{"type":"null"},` + strings.Repeat(`{},`, 2*MaxInPlace) + `{}]}`,
		"{" + dear + "}",
		`{"anyOf":[{"not":{"type":"null"}},{` + dear + `}]}`,
		`{"properties":{"a":{` + dear + `}},"patternProperties":{"b":{` + dear + `}},"dependencies":{"a":{` + dear + `}}}`,
		`{"items":{` + dear + `},"prefixItems":[{` + dear + `}],"additionalProperties":{` + dear + `},"contentSchema":{` + dear + `}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{` + dear + `}],"definitions":{"a":{` + dear + `}}}`,
		`{"enu\u006d":["x",{"a":"x"}],"CONST":1,"Type":"null","minitemſ":3,"$dynamicREF":"#","UniqueItemS":3}`,
		`{"MinLength":1e2,"minLength":1,"maximum":12.50}`,
	} {
		parsed, err := Parse([]byte(schema))
		if err != nil {
			t.Errorf("%.80s: %v", schema, err)
			continue
		}
		if parsed.Bytes() > 1<<20 {
			t.Errorf("%.80s: %d bytes", schema, parsed.Bytes())
		}
		for _, value := range []any{"x", map[string]any{"a": "x"}} {
			if err := parsed.Validate(value); err != nil {
				t.Errorf("%.80s: %v", schema, err)
			}
		}
	}
}

// Names of properties, and keys within data, are not keywords and stay.
func TestNamesThatLookLikeKeywords(t *testing.T) {
	parsed, err := Parse([]byte(`{"properties":{"Type":{"Type":"null","enum":[{"Items":1}]}},"required":["Items"],"dependentRequired":{"Type":["ITEMS"]},` +
		`"$defs":{"Enum":{"type":"string"}},"patternProperties":{"ITEM":{"$ref":"#/$defs/Enum"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, fits := range map[string]bool{
		`{"Items":1,"ITEMS":"x","Type":{"Items":1}}`: true,
		`{"Items":1,"Type":{"Items":1}}`:             false,
		`{"Items":1,"ITEMS":1}`:                      false,
		`{"Items":1,"ITEMS":"x","Type":{"Items":2}}`: false,
		`{"ITEMS":"x"}`:                              false,
	} {
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		if err := parsed.Validate(v); (err == nil) != fits {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// Whatever a schema names as its dialect, values are checked by it.
func TestDialects(t *testing.T) {
	for version, draft7 := range map[string]bool{
		"": false, "https://json-schema.org/draft/2020-12/schema": false, "https://json-schema.org/draft/2020-12/schema#": false,
		"http://json-schema.org/draft/2020-12/schema": false, "https://json-schema.org/draft/2019-09/schema#": false,
		"http://json-schema.org/schema#": false, "https://example.org/dialect": false, "2020-12": false,
		"http://json-schema.org/draft-07/schema#": true, "https://json-schema.org/draft-07/schema#": true, "http://json-schema.org/draft-07/schema": true,
		"http://json-schema.org/draft-06/schema#": true, "http://json-schema.org/draft-04/schema": true,
	} {
		parsed, err := Parse([]byte(`{"$schema":"` + version + `","type":"object","properties":{"new":{"prefixItems":[{"type":"null"}]},"old":{"items":[{"type":"null"}]}}}`))
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		of := func(name string) map[string]any { return map[string]any{name: []any{5.0}} }
		for _, test := range []struct {
			value any
			fits  bool
		}{{of("other"), true}, {5.0, false}, {of("new"), draft7}, {of("old"), !draft7}} {
			if err := parsed.Validate(test.value); (err == nil) != test.fits {
				t.Errorf("%s, %v: %v", version, test.value, err)
			}
		}
	}
}
