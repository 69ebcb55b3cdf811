package schema

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// What the library refuses has a rule that is named, and what it takes has none.
func FuzzTheBrokenRuleIsFound(f *testing.F) {
	draft7 := `{"$schema":"http://json-schema.org/draft-07/schema#",` + explained[1:]
	for _, value := range []string{
		`{"n":1,"f":0.6}`, `{"n":1,"nodes":[{"z":1}]}`, `{"n":1,"pair":["a",1,true,true]}`, `{"n":1,"other":""}`, `{"n":1,"maybe":{"x":5}}`, `{"n":1,"no":"s"}`, `{}`,
	} {
		f.Add(explained, value)
		f.Add(draft7, value)
	}
	f.Add(`{"if":{"minProperties":2},"then":{"required":["a"]},"else":{"maxProperties":0}}`, `{"b":1}`)
	f.Add(`{"contains":{"type":"integer"},"minContains":2,"maxContains":3}`, `[1,"x",1.5,2,3,4]`)
	f.Add(`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"maxProperties":1}}}`, `{"a":1,"b":2}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"maxProperties":1}},"items":[true,false],"additionalItems":{"const":0}}`, `{"c":1,"a":2}`)
	f.Add(`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":true}}]}`, `{"a":1,"b":2}`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		s, err := Parse([]byte(schema))
		var v any
		if err != nil || json.Unmarshal([]byte(value), &v) != nil || price(s.checked, v) != nil || misspelt(s.checked.root) {
			t.Skip()
		}
		if version := s.resolved.Schema().Schema; version != "" && !isDraft7(version) {
			t.Skip() // 2020-12 is what the library takes the others for, or refuses all values by
		}
		refused := s.resolved.Validate(v)
		find := s.finder()
		found := find.broken(s.checked.root, v, "")
		if find.doubt == nil && (found == nil) != (refused == nil) {
			t.Errorf("the library says %v, and the walk %v", refused, found)
		}
	})
}

// misspelt says whether a document has a keyword in other letters, such as ENUM,
// which encoding/json takes for it.
func misspelt(node any) bool {
	keywords := strings.Fields("type enum const multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength pattern " +
		"prefixItems items additionalItems contains minContains maxContains minItems maxItems uniqueItems unevaluatedItems " +
		"properties patternProperties additionalProperties propertyNames minProperties maxProperties required unevaluatedProperties " +
		"dependentRequired dependentSchemas dependencies allOf anyOf oneOf not if then else $ref $dynamicRef $defs definitions $schema $id")
	switch n := node.(type) {
	case map[string]any:
		for key, child := range n {
			if misspelt(child) || slices.ContainsFunc(keywords, func(k string) bool { return k != key && strings.EqualFold(k, key) }) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(n, misspelt)
	}
	return false
}
