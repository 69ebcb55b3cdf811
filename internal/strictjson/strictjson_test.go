package strictjson

import (
	"encoding/json"
	"strings"
	"testing"
)

// Whatever is sent, checking it ends, and what passes reads the same for every
// program: writing it anew and checking that changes nothing.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,{"b":null}]}`, `{"a":1,"a":2}`, `{"\u0061":1,"a":2}`, `[`, `{"a":`, `{"a":1}x`, `{"a":1e999}`, strings.Repeat(`{"a":[`, 100)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if Object(raw) != nil {
			return
		}
		var value map[string]json.RawMessage
		if err := json.Unmarshal(raw, &value); err != nil {
			t.Fatalf("it passed, but is not an object: %v", err)
		}
		again, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := Object(again); err != nil {
			t.Fatalf("%s passed, but not %s: %v", raw, again, err)
		}
	})
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                      "ends too early",
		`{"a":1`:                "ends too early",
		`garbage`:               "not JSON",
		`{"a" 1}`:               "not JSON",
		`[]`:                    "not a JSON object",
		`"a"`:                   "not a JSON object",
		`{} {}`:                 "goes on after",
		`{}x`:                   "goes on after",
		`{"a":1,"a":2}`:         `"a" is there twice`,
		`{"\u0061":1,"a":2}`:    `"a" is there twice`,
		`{"b":[{"a":1,"a":2}]}`: `"a" is there twice`,
		"{\"a\":\"\xff\"}":      "not UTF-8",
	} {
		if err := Object([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestDepth(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1)) }
	if err := Object(nested(MaxDepth)); err != nil {
		t.Error(err)
	}
	if err := Object(nested(MaxDepth + 1)); err == nil {
		t.Error("too deep, and passed")
	}
}
