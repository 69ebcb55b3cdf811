package mcp

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/plugin/schema"
)

// Without a pattern that is JavaScript's, or a type of the server's own, a schema takes all that
// it took with it.
func TestPatternsOfJavaScript(t *testing.T) {
	for raw, test := range map[string]struct {
		value   string
		dropped int
	}{
		`{"properties":{"a":{"pattern":"^(?!x)"},"b":{"pattern":"^y"}}}`:                                                                          {`{"a":"y","b":"y"}`, 1},
		`{"patternProperties":{"^(?!_).+$":{"type":"string"},"^_":{"type":"null"}},"additionalProperties":false}`:                                 {`{"a":"y","_":null}`, 1},
		`{"allOf":[{"patternProperties":{"^(?!_).+$":{"type":"string"}}}],"unevaluatedProperties":false}`:                                         {`{"a":"y"}`, 1},
		`{"properties":{"a":{"not":{"pattern":"^(?=/)"}}}}`:                                                                                       {`{"a":"y"}`, 1},
		`{"properties":{"a":{"oneOf":[{"pattern":"^(?!http).*"},{"pattern":"^http"}]}}}`:                                                          {`{"a":"http"}`, 1},
		`{"oneOf":[{"properties":{"a":{"pattern":"^(?!x)"}}},{"type":"object"}],"allOf":[{"type":"object"}]}`:                                     {`{}`, 1},
		`{"if":{"properties":{"a":{"pattern":"^(?=x)"}}},"then":{"required":["b"]},"else":{"required":["c"]}}`:                                    {`{"a":"y","c":1}`, 1},
		`{"properties":{"a":{"contains":{"pattern":"^(?=x)"},"maxContains":1}}}`:                                                                  {`{"a":["x","y"]}`, 1},
		`{"properties":{"a":{"not":{"$ref":"#/$defs/d"}}},"$defs":{"d":{"pattern":"^(?=/)"}}}`:                                                    {`{"a":"y"}`, 1},
		`{"properties":{"a":{"not":{"pattern":"^/"}}}}`:                                                                                           {`{"a":"y"}`, 0},
		`{"properties":{"a":{"default":{"pattern":"*.ts"},"examples":[{"pattern":"*"}],"enum":[{"pattern":"*"}]},"b":{"const":{"pattern":"*"}}}}`: {`{"a":{"pattern":"*"},"b":{"pattern":"*"}}`, 0},
		`{"properties":{"a":{"type":"any"},"b":{"type":["text","null"]},"type":{"type":"string"}}}`:                                               {`{"a":1,"b":"x","type":"y"}`, 2},
		`{"properties":{"a":{"anyOf":[{"not":{"type":"any"}},{"type":"null"}]}}}`:                                                                 {`{"a":null}`, 1},
	} {
		var s map[string]any
		var value any
		if json.Unmarshal([]byte(raw), &s) != nil || json.Unmarshal([]byte(test.value), &value) != nil {
			t.Fatal(raw)
		}
		dropped, _ := loosen(s)
		mended, _ := json.Marshal(s)
		parsed, err := schema.Parse(mended)
		if err == nil {
			err = parsed.Validate(value)
		}
		if err != nil || dropped != test.dropped {
			t.Errorf("%s: %d dropped, %s: %v", raw, dropped, mended, err)
		}
	}
}

// An exclusive bound of draft 4 is one of today's.
func TestBoundsOfDraft4(t *testing.T) {
	for raw, want := range map[string]string{
		`{"minimum":1,"exclusiveMinimum":true}`:                                         `{"exclusiveMinimum":1}`,
		`{"properties":{"a":{"maximum":12345678901234567890,"exclusiveMaximum":true}}}`: `{"properties":{"a":{"exclusiveMaximum":12345678901234567890}}}`,
		`{"items":{"minimum":1,"exclusiveMinimum":false}}`:                              `{"items":{"minimum":1}}`,
		`{"exclusiveMaximum":true}`:                                                     `{}`,
		`{"minimum":1,"exclusiveMinimum":2}`:                                            "",
		`{"properties":{"exclusiveMinimum":true},"default":{"exclusiveMinimum":true}}`:  "",
	} {
		l := &listing{}
		mended := string(l.mend("a", json.RawMessage(raw), false))
		if want == "" {
			want = raw
		}
		if mended != want || l.warnings != nil {
			t.Errorf("%s becomes %s, want %s, with %q", raw, mended, want, l.warnings)
		}
	}
}
