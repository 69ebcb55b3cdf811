package schema

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestDecodeErrorsSpeakJSON(t *testing.T) {
	type inner struct {
		Top   int8     `json:"top"`
		Big   int      `json:"big"`
		Count uint16   `json:"count"`
		List  []string `json:"list"`
		Share float64  `json:"share"`
		On    bool     `json:"on"`
	}
	var into struct {
		Text  string           `json:"text"`
		Inner inner            `json:"inner"`
		Map   map[string]inner `json:"map"`
	}
	for text, want := range map[string]string{
		`[1]`:                      "it is a list, want an object",
		`5`:                        "it is a number, want an object",
		`{"text":5}`:               "text is a number, want a string",
		`{"inner":"x"}`:            "inner is a string, want an object",
		`{"inner":{"top":1e2}}`:    "inner.top is the number 1e2, want a whole number in digits, from -128 to 127",
		`{"inner":{"big":1e2}}`:    "inner.big is the number 1e2, want a whole number in digits, from -9223372036854775808 to 9223372036854775807",
		`{"inner":{"top":300}}`:    "inner.top is the number 300, want a whole number in digits, from -128 to 127",
		`{"inner":{"count":-1}}`:   "inner.count is the number -1, want a whole number in digits, from 0 to 65535",
		`{"inner":{"list":{}}}`:    "inner.list is an object, want a list",
		`{"inner":{"share":true}}`: "inner.share is true or false, want a number",
		`{"inner":{"on":"yes"}}`:   "inner.on is a string, want true or false",
		`{"text"`:                  "no valid JSON at byte 7: unexpected end of JSON input",
		`{"text":nope}`:            "no valid JSON at byte 10: invalid character 'o' in literal null (expecting 'u')",
	} {
		if got := DecodeError(json.Unmarshal([]byte(text), &into)); got == nil || got.Error() != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	if err := errors.New("other"); DecodeError(err) != err || DecodeError(nil) != nil {
		t.Error("another error was changed")
	}
}

func TestDecodeAny(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[1,{"b c":-1e400}]}`: `a[1]["b c"]: want a number from -1.798e+308 to 1.798e+308, not -1e400`,
		`1e999`:                    `want a number from -1.798e+308 to 1.798e+308, not 1e999`,
		`{"a":`:                    "no valid JSON at byte 5: unexpected end of JSON input",
		`{"a":1} {}`:               "no valid JSON at byte 9: invalid character '{' after top-level value",
	} {
		if value, err := DecodeAny([]byte(text)); value != nil || err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v, want %s", text, value, err, want)
		}
	}
	if value, err := DecodeAny([]byte(`{"a":1e300}`)); err != nil || value.(map[string]any)["a"] != 1e300 {
		t.Errorf("%v, %v", value, err)
	}
}
