package schema

import (
	"fmt"
	"strings"
	"testing"
)

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
	} {
		resolved, err := Parse([]byte(test.schema))
		if (err == nil) != test.ok || (resolved == nil) != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
