package schema

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// doubling checks each item twice for each time that its list is checked.
const doubling = `{"type":"object","$defs":{"s":{"allOf":[{"items":{"$ref":"#/$defs/s"}},{"items":{"$ref":"#/$defs/s"}}]}},"properties":{"a":{"$ref":"#/$defs/s"}}}`

// What might take for ever is not checked; what is large, but no more, is.
func TestPrice(t *testing.T) {
	nested := func(depth int) string {
		return `{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	}
	list := `{"a":[` + strings.Repeat("1,", 200_000) + "1]}"
	lists := `{"a":[` + strings.Repeat("{},", 300_000) + `{}]}`
	doubled := `{"properties":{"a":{"anyOf":[{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 20) + `{"type":"null"}]},{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 20) + `{"type":"array"}]}]}}}`
	many := `{"items":{"allOf":[` + strings.Repeat(`{},`, 400) + `{}]}}`
	for _, test := range []struct {
		name, schema, value string
		dear                bool
	}{
		{"shallow", doubling, nested(8), false},
		{"deep", doubling, nested(40), true},
		{"another keyword", strings.ReplaceAll(doubling, "items", "additionalProperties"), `{"a":` + strings.Repeat(`{"x":`, 40) + "1" + strings.Repeat("}", 40) + "}", true},
		{"conditions", strings.ReplaceAll(doubling, `"allOf":[{"items":{"$ref":"#/$defs/s"}},`, `"if":{"items":{"$ref":"#/$defs/s"}},"anyOf":[`), nested(40), true},
		{"a tree", `{"type":"object","properties":{"a":{"$ref":"#/properties/tree"},"tree":{"anyOf":[{"type":"array","items":{"$ref":"#/properties/tree"}},{"type":"null"}]}}}`, nested(120), false},
		{"a tree without end", `{"type":"object","properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"array","items":{"$ref":"#/$defs/s"}}}}`, nested(5000), true},
		{"long list", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","minimum":1}}}}`, list, false},
		{"long list, many rules", `{"type":"object","properties":{"a":` + many + `}}`, list, true},
		{"escaped reference", strings.ReplaceAll(doubling, "#/$defs/s", "#/%24defs/s"), nested(40), true},
		{"patterns", `{"patternProperties":{"^.*a":{"allOf":[` + strings.Repeat(`{"pattern":"a.*b"},`, 300) + `{}]}}}`, `{"a":"` + strings.Repeat("x", 900_000) + `"}`, true},
		{"a large pattern", `{"properties":{"a":{"pattern":"^(?:.?){1000}.{500}!$"}}}`, `{"a":"` + strings.Repeat("x", 100_000) + `"}`, true},
		{"a large pattern, a short text", `{"properties":{"a":{"pattern":"^(?:.?){1000}.{500}!?$"}}}`, `{"a":"` + strings.Repeat("x", 1000) + `"}`, false},
		{"a large pattern, no text", `{"properties":{"a":{"items":{"pattern":"^(?:.?){1000}.{500}!?$"}}}}`, `{"a":[` + strings.Repeat(`"",`, 200_000) + `""]}`, true},
		{"a long text", `{"properties":{"a":{"pattern":"^[a-z]{1,4}"}}}`, `{"a":"` + strings.Repeat("x", 1_000_000) + `"}`, false},
		{"alternatives to a list", `{"properties":{"a":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 500) + `{"type":"null"}]}}}`, lists, true},
		{"one of them", strings.ReplaceAll(doubled, "anyOf", "oneOf"), lists, true},
		{"alternatives within alternatives", doubled, lists, true},
		{"a list or null", `{"properties":{"a":{"anyOf":[{"type":"array","items":{"anyOf":[{"type":"object"},{"type":"null"}]}},{"type":"null"}]}}}`, strings.Replace(lists, strings.Repeat("{},", 100_000), "", 1), false},
		{"other names", `{"properties":{"a":{"items":{"anyOf":[` + strings.Repeat(`{"additionalProperties":false},`, 200) + `{}]}}}}`, `{"a":[{"` + strings.Repeat(`\u0001`, 150_000) + `":1}]}`, true},
		{"a long text, not short enough", `{"properties":{"a":{"anyOf":[` + strings.Repeat(`{"maxLength":5},`, 200) + `{}]}}}`, `{"a":"` + strings.Repeat("x", 1_000_000) + `"}`, true},
		{"a long rule", `{"properties":{"a":{"items":{"anyOf":[{"const":"` + strings.Repeat("x", 200_000) + `"},{}]}}}}`, list, true},
		{"a rule far down", `{"properties":{"a":{"items":{"not":{"$ref":"#/$defs/` + strings.Repeat("x", 100_000) + `"}}}},"$defs":{"` + strings.Repeat("x", 100_000) + `":{"type":"string"}}}`, list, true},
		{"a rule with a long name", `{"properties":{"a":{"items":{"not":{"type":"string","$anchor":"` + strings.Repeat("x", 100_000) + `"}}}}}`, list, true},
		{"what is not", `{"properties":{"a":{"items":{"anyOf":[{"not":{"const":1,"description":"` + strings.Repeat("x", 200_000) + `"}},{}]}}}}`, list, true},
		{"numbers out of sight", `{"properties":{"a":{"items":{"anyOf":[{"type":"string"},{"type":"number"}]}}}}`, `{"a":[` + strings.Repeat("1e300,", 100_000) + `1]}`, true},
		{"positions", `{"properties":{"a":{"prefixItems":[{"type":"integer"}],"items":[{"type":"integer"}],"uniqueItems":false}}}`, list, false},
	} {
		if test.name != "deep" && test.dear && testing.Short() {
			continue // each takes all the steps that there are
		}
		parsed, err := Parse([]byte(test.schema))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var value any
		if err := json.Unmarshal([]byte(test.value), &value); err != nil {
			t.Fatal(err)
		}
		if err := parsed.Validate(value); errors.Is(err, ErrTooDear) != test.dear || err != nil && !test.dear {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// References are into the document as it is: no $id in it leads them elsewhere, nor is
// one refused for its form.
func TestIDs(t *testing.T) {
	for _, raw := range []string{
		`{"$id":"https://example.org/","type":"object","properties":{"$id":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`,
		`{"$id":"User","type":"object","properties":{"$id":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$id":"#/$defs/x","type":"string"}}}`,
		`{"properties":{"$id":{"$id":"https://example.org/y","$ref":"#/$defs/x"}},"$defs":{"x":{"$id":"https://example.org/x","type":"string","const":"a"}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"#root","properties":{"$id":{"$ref":"#/definitions/x"}},"definitions":{"x":{"$id":"#x","type":"string"}},"default":{"$id":1}}`,
	} {
		parsed, err := Parse([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if parsed.Validate(map[string]any{"$id": "a"}) != nil || parsed.Validate(map[string]any{"$id": 1.0}) == nil {
			t.Errorf("%s: its reference leads elsewhere", raw)
		}
	}
}
