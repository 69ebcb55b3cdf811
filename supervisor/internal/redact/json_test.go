package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	s := set(t, "hunter22", `a"b\c`, "12345678", "é<é", `{"k":[1,2]}`)
	for name, test := range map[string]struct{ in, want string }{
		"nothing":              {`{"a": [1, true, null, "x\u0041"]}`, `{"a": [1, true, null, "x\u0041"]}`},
		"a value":              {`{"a": "hunter22"}`, `{"a": "[REDACTED]"}`},
		"inside one":           {`["\thunter22\n"]`, `["\t[REDACTED]\n"]`},
		"a name":               {`{"hunter22":1,"hunter22x":2}`, `{"[REDACTED]":1,"[REDACTED]x":2}`},
		"escapes of any kind":  {`"\u0068unter\u0032\u0032 a\u0022b\u005cc"`, `"[REDACTED] [REDACTED]"`},
		"escaped twice":        {`"{\"a\":\"a\\\"b\\\\c\"}"`, `"{\"a\":\"[REDACTED]\"}"`},
		"HTML escapes":         {`"\u00e9\u003c\u00e9"`, `"[REDACTED]"`},
		"no needless escapes":  {`"<hunter22>"`, `"<[REDACTED]>"`},
		"a number":             {`{"pin": 12345678, "x": 1234567}`, `{"pin": "[REDACTED]", "x": 1234567}`},
		"inside a number":      {`[-0.123456789e5]`, `["[REDACTED]"]`},
		"a scalar":             {` 12345678 `, ` "[REDACTED]" `},
		"more than one scalar": {`[{"k":[1,2]}]`, `"[REDACTED]"`},
		"the same in a string": {`["{\"k\":[1,2]}"]`, `["[REDACTED]"]`},
		"no JSON":              {`{"a": hunter22`, `{"a": [REDACTED]`},
		"no text":              {``, ``},
	} {
		if got := string(s.JSON(json.RawMessage(test.in))); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// In bytes that are not UTF-8, which reading a string would replace.
func TestJSONBytes(t *testing.T) {
	s := set(t, "\xff\xfe\xfd\xfc")
	if got := string(s.JSON(json.RawMessage("[\"a\xff\xfe\xfd\xfcb\"]"))); got != `["[REDACTED]"]` {
		t.Errorf("%q", got)
	}
}

// JSON stays JSON, and neither its text nor any string in it holds a secret.
func FuzzJSON(f *testing.F) {
	f.Add("hunter22", `{"hunter22": ["a hunter22", 1, "\u0068unter22"]}`)
	f.Add(`":["`, `{"a":["b"]}`)
	f.Add("1234", `[12345, "\\1234"]`)
	f.Fuzz(func(t *testing.T, secret, text string) {
		s, err := New([]byte(secret))
		if err != nil || s == nil || strings.Contains(`"`+Replacement+`"`, s.secrets[0]) {
			return
		}
		out := s.JSON(json.RawMessage(text))
		if !json.Valid([]byte(text)) {
			return
		}
		var value any
		decoder := json.NewDecoder(bytes.NewReader(out))
		decoder.UseNumber() // some fit no float64
		if err := decoder.Decode(&value); err != nil || !json.Valid(out) {
			t.Fatalf("%q of %q: %v", out, text, err)
		}
		if strings.Contains(string(out), s.secrets[0]) || holds(value, s.secrets[0]) {
			t.Fatalf("%q is left in %q", s.secrets[0], out)
		}
	})
}

func holds(value any, secret string) bool {
	switch value := value.(type) {
	case string:
		return leftIn(value, secret)
	case []any:
		for _, item := range value {
			if holds(item, secret) {
				return true
			}
		}
	case map[string]any:
		for name, item := range value {
			if leftIn(name, secret) || holds(item, secret) {
				return true
			}
		}
	}
	return false
}

// leftIn: what a replacement makes together with its neighbours is not a secret.
func leftIn(text, secret string) bool {
	for part := range strings.SplitSeq(text, Replacement) {
		if strings.Contains(part, secret) {
			return true
		}
	}
	return false
}
