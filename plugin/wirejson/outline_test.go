package wirejson

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestOutline(t *testing.T) {
	const raw = ` { "calls" : [ {"id":"a\n","n":-1.5e2,"arguments":{"x":"]}\"","y":[1,[2]]},"list":[[]],"t":true,"f":false,"z":null} , {} ] , "empty" : [ ] } `
	got := Outline([]byte(raw), 3)
	want := map[string]any{
		"calls": []any{map[string]any{
			"id": "a\n", "n": -150.0, "arguments": map[string]any{}, "list": []any{}, "t": true, "f": false, "z": nil,
		}, map[string]any{}},
		"empty": []any{},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

func FuzzOutline(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}],"c":"\u0061"}`, `[[],{},[true,false]]`, `"x"`, ` 1e9 `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if Check(raw) != nil {
			return
		}
		var want any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if got := Outline(raw, MaxDepth); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		_ = Outline(raw, 1)
	})
}
