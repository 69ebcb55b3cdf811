package schema

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

const explained = `{"type":"object","properties":{
	"n":{"type":"integer","minimum":0,"maximum":255}, "f":{"type":"number","exclusiveMinimum":0.5,"multipleOf":0.25},
	"name":{"type":"string","maxLength":3,"minLength":1},"nested":{"$ref":"#/$defs/inner"},"code":{"type":"string","pattern":"^[a-z]+$"},
	"nodes":{"type":["null","array"],"maxItems":4,"items":{"type":"object","properties":{"sub":{"type":"object","properties":{"a":{"type":"number"}},"required":["a","b"]}},"additionalProperties":false}},
	"by":{"type":"object","additionalProperties":{"$ref":"#/$defs/inner"},"patternProperties":{"^n":{"type":"number"}},"propertyNames":{"maxLength":20}},
	"pair":{"prefixItems":[{"type":"string"},{"type":"number"}],"items":{"type":"boolean"},"uniqueItems":true},
	"maybe":{"anyOf":[{"$ref":"#/$defs/inner"},{"type":"null"}]},"either":{"oneOf":[{"type":"string"},{"type":"integer"}]},
	"word":{"oneOf":[{"const":"a"},{"const":"b"}]},"other":{"oneOf":[{"minLength":2},{"maxLength":1},{"maxLength":0}]},"is":{"const":"x"},
	"all":{"allOf":[{"type":"array"},{"items":{"allOf":[{"$ref":"#/$defs/inner"}]}}]},"never":false,"has":{"contains":{"const":5}},"a/b: %25":{"items":{"type":"null"}},"no":{"not":{"type":"string"}},
	"tree":{"$ref":"#/$defs/tree"}},
	"required":["n"],"$defs":{"inner":{"type":"object","properties":{"x":{"enum":[1,2,"z"]}}},
		"tree":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/$defs/tree"}},"leaf":{"type":"boolean"}}}}}`

func refusal(t *testing.T, parsed *Schema, value string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		t.Fatal(err)
	}
	err := parsed.Validate(v)
	if err == nil {
		t.Fatalf("%s satisfies the schema", value)
	}
	return err.Error()
}

// Who gave the value learns the place in it, and the rule.
func TestExplain(t *testing.T) {
	for value, want := range map[string]string{
		`{}`:                            `missing "n" (required)`,
		`{"n":-1}`:                      `n: want at least 0, not -1`,
		`{"n":300}`:                     `n: want at most 255, not 300`,
		`{"n":1.5}`:                     `n: want a whole number, not 1.5`,
		`{"n":1,"f":0.25}`:              `f: want more than 0.5, not 0.25`,
		`{"n":1,"f":0.6}`:               `f: want a multiple of 0.25, not 0.6`,
		`{"n":null}`:                    `n: want a whole number, not null`,
		`{"n":"5"}`:                     `n: want a whole number, not the string "5"`,
		`{"n":1,"name":"minimum: 1/1"}`: `name: want at most 3 characters, not the 12 of "minimum: 1/1"`,
		`{"n":1,"name":""}`:             `name: want at least 1 characters, not the 0 of ""`,
		`{"n":1,"code":"A: 1"}`:         `code: want a string that matches the pattern ^[a-z]+$, not the string "A: 1"`,
		`{"n":1,"nested":{"x":3}}`:      `nested.x: want one of 1, 2, "z", not 3`,
		`{"n":1,"nodes":[{},{"sub":{"b":1,"a":"x"}}]}`:                     `nodes[1].sub.a: want a number, not the string "x"`,
		`{"n":1,"nodes":[{},{"sub":{}}]}`:                                  `nodes[1].sub: missing "a", "b" (required)`,
		`{"n":1,"nodes":[{"z":1,"y":2}]}`:                                  `nodes[0]: unknown "y", "z": want "sub" (additionalProperties)`,
		`{"n":1,"nodes":"x"}`:                                              `nodes: want a list or null, not the string "x"`,
		`{"n":1,"nodes":[{},{},{},{},{}]}`:                                 `nodes: want at most 4 items, not 5`,
		`{"n":1,"by":{"ok":{},"a b":{"x":"q"}}}`:                           `by["a b"].x: want one of 1, 2, "z", not the string "q"`,
		`{"n":1,"by":{"ok":{},"nn":[]}}`:                                   `by.nn: want a number, not a list`,
		`{"n":1,"by":{"` + strings.Repeat("k", 21) + `":{}}}`:              `by.kkkkkkkkkkkkkkkkkkkkk (its name): want at most 20 characters, not the 21 of "kkkkkkkkkkkkkkkkkkkkk"`,
		`{"n":1,"pair":["a","b"]}`:                                         `pair[1]: want a number, not the string "b"`,
		`{"n":1,"pair":["a",1,true,0]}`:                                    `pair[3]: want true or false, not 0`,
		`{"n":1,"pair":["a",1,true,true]}`:                                 `pair: want unique items, but two are equal (uniqueItems)`,
		`{"n":1,"maybe":{"x":5}}`:                                          `maybe.x: want one of 1, 2, "z", not 5`,
		`{"n":1,"maybe":5}`:                                                `maybe: want an object or null, not 5`,
		`{"n":1,"either":[]}`:                                              `either: want a string or a whole number, not a list`,
		`{"n":1,"word":"c"}`:                                               `word: want one of "a", "b", not the string "c"`,
		`{"n":1,"other":""}`:                                               `other: the string "" fits several of the 3 forms of oneOf, want just one`,
		`{"n":1,"is":true}`:                                                `is: want "x", not true`,
		`{"n":1,"all":[{},{"x":0}]}`:                                       `all[1].x: want one of 1, 2, "z", not 0`,
		`{"n":1,"has":[1]}`:                                                `has: want an item that fits {"const":5} (contains)`,
		`{"n":1,"a/b: %25":[null,1]}`:                                      `["a/b: %25"][1]: want null, not 1`,
		`{"n":1,"never":1}`:                                                `never: nothing is allowed here`,
		`{"n":1,"no":"s"}`:                                                 `no: want what does not fit {"type":"string"} (not), not the string "s"`,
		`{"n":1,"tree":{"children":[{},{"children":[{},{},{"leaf":1}]}]}}`: `tree.children[1].children[2].leaf: want true or false, not 1`,
	} {
		for draft, text := range map[string]string{
			"2020-12": explained,
			"draft 7": `{"$schema":"http://json-schema.org/draft-07/schema#",` + strings.ReplaceAll(explained, "$defs", "definitions")[1:],
			"named":   `{"$id":"https://example.org/s",` + explained[1:],
		} {
			if draft == "draft 7" && strings.Contains(value, "pair") {
				continue // it has no prefixItems
			}
			parsed, err := Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := refusal(t, parsed, value); got != want {
				t.Errorf("%s, %s:\n%s, want\n%s", draft, value, got, want)
			}
		}
	}
}

// A root that is a reference, and lists by position, are draft 7's.
func TestExplainDraft7(t *testing.T) {
	parsed, err := Parse([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/in","definitions":{"in":{"type":"object","properties":{
		"list":{"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"number"}},"many":{"items":{"type":"null"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"list":[1]}`:           `list[0]: want a string, not 1`,
		`{"list":["a",1,"b"]}`:   `list[2]: want a number, not the string "b"`,
		`{"many":[null,null,1]}`: `many[2]: want null, not 1`,
	} {
		if got := refusal(t, parsed, value); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// However large a value and its names are, a message is short, and has the rule.
func TestExplainIsShort(t *testing.T) {
	parsed, err := Parse([]byte(explained))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ä\n", 20_000)
	text, _ := json.Marshal(long)
	for value, want := range map[string]string{
		`{"n":` + string(text) + `}`:                  "n: want a whole number, not the string",
		`{"n":1,"nested":{"x":` + string(text) + `}}`: "nested.x: want one of 1, 2, \"z\", not the string",
		`{"n":1,"by":{` + string(text) + `:{}}}`:      "(its name): want at most 20 characters, not the 40000 of",
		`{"n":1,"nodes":[{` + string(text) + `:5}]}`:  `: want "sub" (additionalProperties)`,
		`{"n":1,"no":` + string(text) + `}`:           `no: want what does not fit {"type":"string"} (not), not the string`,
		`{"n":1,"tree":` + strings.Repeat(`{"children":[`, 300) + `{"leaf":1}` + strings.Repeat(`]}`, 300) + `}`: "leaf: want true or false, not 1",
		`{"n":1,"nodes":[` + strings.Repeat(`{},`, 10_000) + `5]}`:                                               "nodes[10000]: want an object, not 5",
	} {
		got := refusal(t, parsed, value)
		if len(got) > 600 || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%d bytes: %.700s, want %s", len(got), got, want)
		}
	}
}

func TestExplainFromManyGoroutines(t *testing.T) {
	parsed, err := Parse([]byte(explained))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if got := parsed.Validate(map[string]any{"n": 1.0, "nodes": []any{map[string]any{}, 5.0}}); got == nil || got.Error() != "nodes[1]: want an object, not 5" {
				t.Error(got)
			}
		})
	}
	group.Wait()
}
