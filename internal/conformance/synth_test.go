package conformance

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMakeUp(t *testing.T) {
	for _, test := range []struct{ schema, want string }{
		{`{"type":"object"}`, `{}`},
		{`{"properties":{"a":{"type":"string"}}}`, `{}`},
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"]}`, `{"a":"x","b":1}`},
		{`{"type":"object","properties":{"a":{}},"required":["a","undeclared"]}`, `{"a":"x","undeclared":"x"}`},
		{of(`{"const":7}`), `{"a":7}`},
		{of(`{"default":"d","type":"string"}`), `{"a":"d"}`},
		{of(`{"type":"string","examples":["e","f"]}`), `{"a":"e"}`},
		{of(`{"enum":["m","n"]}`), `{"a":"m"}`},
		{of(`{"type":["null","boolean"]}`), `{"a":false}`},
		{of(`{"type":"null"}`), `{"a":null}`},
		{of(`{"type":"string","minLength":3}`), `{"a":"xxx"}`},
		{of(`{"type":"string","maxLength":0}`), `{"a":""}`},
		{of(`{"type":"string","format":"uri"}`), `{"a":"https://example.org/"}`},
		{of(`{"type":"integer","minimum":5}`), `{"a":5}`},
		{of(`{"type":"integer","exclusiveMinimum":5}`), `{"a":6}`},
		{of(`{"type":"integer","maximum":-2}`), `{"a":-2}`},
		{of(`{"type":"number","exclusiveMaximum":0,"multipleOf":0.5}`), `{"a":-0.5}`},
		{of(`{"type":"integer","multipleOf":7}`), `{"a":7}`},
		{of(`{"type":"array","items":{"type":"integer"}}`), `{"a":[]}`},
		{of(`{"type":"array","items":{"type":"integer"},"minItems":2}`), `{"a":[1,1]}`},
		{of(`{"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"]}`), `{"a":{"b":false}}`},
		{of(`{"anyOf":[{"type":"integer"},{"type":"string"}]}`), `{"a":1}`},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/s"}},"required":["a"],"$defs":{"s":{"type":"string"}}}`, `{"a":"x"}`},
		{`{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`, `{"a":1,"b":"x"}`},
	} {
		got, err := makeUp([]byte(test.schema))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v; want %s", test.schema, got, err, test.want)
		}
	}
}

// of is the schema of an object with one required property.
func of(property string) string {
	return `{"type":"object","properties":{"a":` + property + `},"required":["a"]}`
}

func TestWhatCannotBeMadeUp(t *testing.T) {
	for schema, want := range map[string]string{
		of(`{"type":"string","pattern":"^[0-9]{4}$"}`):                                                      "rules that this program cannot meet",
		of(`{"type":"integer","minimum":5,"maximum":4}`):                                                    "rules that this program cannot meet",
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`:                                "refers to itself",
		of(strings.Repeat(`{"type":"array","minItems":1000,"items":`, 5) + "true" + strings.Repeat("}", 5)): "too large",
		`{`: "unexpected end",
	} {
		if got, err := makeUp([]byte(schema)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v; want %q", schema, got, err, want)
		}
	}
}

// Whatever is made up satisfies its schema, and nothing ends the program.
func FuzzMakeUp(f *testing.F) {
	f.Add(brokenInput)
	f.Add(of(`{"type":"array","minItems":1e9,"items":{"type":"array","minItems":1e9}}`))
	f.Add(`{"allOf":[{"allOf":[true]}],"properties":3,"required":[3]}`)
	f.Fuzz(func(t *testing.T, schema string) {
		if made, err := makeUp([]byte(schema)); err == nil && !json.Valid(made) {
			t.Errorf("%s: %s", schema, made)
		}
	})
}

func TestBadArguments(t *testing.T) {
	list := badArguments([]byte(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array"},"c":{},"d":{"type":"integer"},"e":{"type":"number"}}}`))
	var names []string
	for _, c := range list {
		names = append(names, c.Arguments)
	}
	if got, want := strings.Join(names, " "), `{" [] {"a":{"wrong":1}} {"b":"wrong"} {"d":"wrong"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := badArguments([]byte("{")); len(got) != 2 {
		t.Errorf("without a schema: %v", got)
	}
}
