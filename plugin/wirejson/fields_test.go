package wirejson

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestCleanFields(t *testing.T) {
	deep := nested("[", "]", MaxDepth+1)
	for raw, want := range map[string]string{
		`{"a":"\ud800"}`:                                               `{"a":"\ufffd"}`,
		`{"a":` + deep + `,"b":2}`:                                     `{"b":2}`,
		`{"a":{"x":1,"x":2},"b":"\ud800"}`:                             `{"b":"\ufffd"}`,
		`{"a":` + nested("[", "]", MaxDepth) + `}`:                     ``,
		`{"a":1e999,"b":` + nested("[", "]", 50_000) + `,"c":{"d":1}}`: `{"c":{"d":1}}`,
		`{"a":` + nested(`{"x":`, "}", 50_000) + `}`:                   ``,
		`[` + deep + `]`:                                               ``,
	} {
		got, err := CleanFields([]byte(raw))
		if string(got) != want || (err == nil) == IsUnfit(Check([]byte(raw))) {
			t.Errorf("%.60s: %.60s, %v", raw, got, err)
		}
		if len(got) > 0 && Check(got) != nil {
			t.Errorf("%.60s: %v", raw, Check(got))
		}
	}
	if got, err := CleanFields([]byte(`{"a"`)); got != nil || err == nil || IsUnfit(err) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestShallow(t *testing.T) {
	for raw, want := range map[string]string{
		`1`:                       `1`,
		`{"a":[1,{"b":2}]}`:       `{"a":[1,{}]}`,
		`[[[[]],"]"],{}]`:         `[[[],"]"],{}]`,
		`[{"a":"[","b":{"c":1}}]`: `[{"a":"[","b":{}}]`,
		`["[[[["]`:                `["[[[["]`,
		`[[[1,"x`:                 `[[[1,"x`,
		`[[[`:                     `[[[`,
		`]]`:                      `]]`,
	} {
		if got := string(Shallow([]byte(raw), 2)); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func FuzzShallow(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":[null]}]}`, `[[["]"]]]`, `[[["`, `}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		short := Shallow(raw, 2)
		if !json.Valid(raw) {
			return
		}
		if !json.Valid(short) {
			t.Fatalf("%q became %q", raw, short)
		}
		if again := Shallow(short, 2); !bytes.Equal(again, short) {
			t.Fatalf("%q became %q, and then %q", raw, short, again)
		}
	})
}
