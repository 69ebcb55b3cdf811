package schema

import (
	"encoding/json"
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
	f.Add(`{"ENUM":[1],"properties":{"a":{"TYPE":"string","Const":1}}}`, `{"a":2}`)
	f.Add(`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":true}}]}`, `{"a":1,"b":2}`)
	f.Add(`{"$schema":"https://json-schema.org/draft/2019-09/schema#","items":[{"type":"null"}],"prefixItems":[{"type":"string"}]}`, `[1]`)
	f.Add(`{"$schema":"http://json-schema.org/draft-04/schema","items":[{"type":"null"}],"prefixItems":[{"type":"string"}]}`, `[1]`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		s, err := Parse([]byte(schema))
		var v any
		if err != nil || json.Unmarshal([]byte(value), &v) != nil || price(s.checked, v) != nil {
			t.Skip()
		}
		refused := s.resolved.Validate(v)
		find := s.finder()
		found := find.broken(s.checked.root, v, "")
		if find.doubt == nil && (found == nil) != (refused == nil) {
			t.Errorf("the library says %v, and the walk %v", refused, found)
		}
	})
}
