package schema

import (
	"strings"
	"testing"
)

// What people answer is held to its format, by whatever way the schema leads to it; what
// programs give is not.
func TestFormatsOfAnswers(t *testing.T) {
	for _, test := range []struct{ schema, value, want string }{
		{`{"format":"email"}`, `"ada@example.com"`, ""},
		{`{"format":"email"}`, `"ada"`, `want an email address, such as ada@example.com (format), not the string "ada"`},
		{`{"format":"email"}`, `"Ada <ada@example.com>"`, `an email address`},
		{`{"format":"email"}`, `7`, ""},
		{`{"format":"uri"}`, `"https://example.com/?q=1#x"`, ""},
		{`{"format":"uri"}`, `"urn:isbn:1"`, ""},
		{`{"format":"uri"}`, `"example.com"`, `a whole address`},
		{`{"format":"date"}`, `"2026-02-28"`, ""},
		{`{"format":"date"}`, `"2026-02-30"`, `want a date, such as 2026-07-28 (format), not the string "2026-02-30"`},
		{`{"format":"date-time"}`, `"2026-07-28T12:30:00+02:00"`, ""},
		{`{"format":"date-time"}`, `"2026-07-28 12:30"`, "want a date and time"},
		{`{"format":"ipv4"}`, `"any"`, ""},
		{`{"properties":{"a":{"format":"date"}}}`, `{"a":"x"}`, `a: want a date`},
		{`{"properties":{"a":{"items":{"format":"date"}}}}`, `{"a":["2026-07-28","x"]}`, `a[1]: want a date`},
		{`{"$defs":{"d":{"format":"date"}},"properties":{"a":{"$ref":"#/$defs/d"}}}`, `{"a":"x"}`, `a: want a date`},
		{`{"anyOf":[{"type":"null"},{"type":"string","format":"date"}]}`, `"x"`, `want a date`},
		{`{"anyOf":[{"type":"null"},{"type":"string","format":"date"}]}`, `null`, ""},
		{`{"format":"date","maxLength":3}`, `"2026-07-28"`, "want at most 3 characters"},
		{`{"properties":{"a":{"format":"email"}}}`, `{"a":"` + strings.Repeat("x", 1000) + `\u001b"}`, `a: want an email address`},
	} {
		s, err := Parse([]byte(test.schema))
		if err != nil {
			t.Fatal(err)
		}
		value, err := DecodeAny([]byte(test.value))
		if err != nil {
			t.Fatal(err)
		}
		err = s.ValidateAnswer(value)
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || len(err.Error()) > 400 || strings.ContainsRune(err.Error(), 0x1b)) {
			t.Errorf("%s, %s: %v, want %s", test.schema, test.value, err, test.want)
		}
		if ofProgram := s.Validate(value); ofProgram != nil && !strings.Contains(test.want, "at most") {
			t.Errorf("%s, %s: %v of what a program gives", test.schema, test.value, ofProgram)
		}
	}
}
