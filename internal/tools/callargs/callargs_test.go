package callargs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const schema = `{"properties":{
	"text":{"type":"string"}, "count":{"type":"integer"}, "deep":{"type":"object"}, "any":{},
	"tags":{"type":"array"}, "maybe":{"type":["null","array"]}, "either":{"type":["integer","string"]}}}`

func TestPairs(t *testing.T) {
	for _, test := range []struct {
		words, want, err string
	}{
		{"", `{}`, ""},
		{"text=1", `{"text":"1"}`, ""},
		{"text=", `{"text":""}`, ""},
		{"text=a=b", `{"text":"a=b"}`, ""},
		{"count=3", `{"count":3}`, ""},
		{"count=three", `{"count":"three"}`, ""},
		{`deep={"a":1}`, `{"deep":{"a":1}}`, ""},
		{"either=3", `{"either":"3"}`, ""},
		{"any=3 unknown=true", `{"any":"3","unknown":"true"}`, ""},
		{"tags=a tags=b", `{"tags":["a","b"]}`, ""},
		{`tags=["a"]`, `{"tags":["a"]}`, ""},
		{"maybe=a", `{"maybe":["a"]}`, ""},
		{"text", "", `"text" is not key=value: want one of any= count=`},
		{"=x", "", "is not key=value"},
		{"text=caf\xe9", "", `argument "text" is not UTF-8: hand over text in UTF-8`},
		{"count=1 count=2", "", "count is given twice"},
		{`tags=["a"] tags=b`, "", "both as a whole list and item by item"},
		{`tags=b tags=["a"]`, "", "both as a whole list and item by item"},
	} {
		got, err := Pairs(strings.Fields(test.words), []byte(schema))
		if test.err == "" && (err != nil || string(got) != test.want) {
			t.Errorf("%s: %s, %v; want %s", test.words, got, err, test.want)
		}
		if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: %v; want %q", test.words, err, test.err)
		}
	}
	const anything = `{"properties":{"any":true,"none":false,"n":{"type":"integer"},"list":{"type":"array","items":true},"ns":{"type":"array","items":{"type":"integer"}}}}`
	got, err := Pairs([]string{"any=x", "n=5", "list=a", "ns=1", "ns=2"}, []byte(anything))
	if want := `{"any":"x","list":["a"],"n":5,"ns":[1,2]}`; err != nil || string(got) != want {
		t.Errorf("beside the schema true: %s, %v; want %s", got, err, want)
	}
	if _, err := Pairs([]string{"x"}, []byte("{")); err == nil || !strings.Contains(err.Error(), "the tool's parameters") {
		t.Errorf("without a schema: %v", err)
	}
}

// Optional values have their types behind alternatives in the schemas of Python servers.
func TestPairsOfAlternatives(t *testing.T) {
	const schema = `{"properties":{
		"limit":{"anyOf":[{"type":"integer"},{"type":"null"}]}, "flag":{"oneOf":[{"type":"boolean"},{"type":"null"}]},
		"tags":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]}, "ns":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]},
		"id":{"anyOf":[{"type":"string"},{"type":"integer"}]}, "mode":{"anyOf":[{"const":"5"},{"type":"integer"}]}, "n":{"allOf":[{"minimum":1},{"type":"integer"}]}}}`
	got, err := Pairs(strings.Fields("limit=5 flag=true tags=1 ns=1 ns=2 id=5 mode=5 n=5"), []byte(schema))
	if want := `{"flag":true,"id":"5","limit":5,"mode":"5","n":5,"ns":[1,2],"tags":["1"]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// What may be a list is one where its key is repeated, and what else it may be where the value is that.
func TestPairsOfListsOrElse(t *testing.T) {
	const schema = `{"properties":{
		"paths":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
		"opts":{"anyOf":[{"type":"object"},{"type":"array","items":{"type":"object"}}]},
		"tags":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]}}}`
	for words, want := range map[string]string{
		"paths=a":              `{"paths":"a"}`,
		"paths=a paths=b":      `{"paths":["a","b"]}`,
		"paths=[1] paths=b":    `{"paths":["[1]","b"]}`,
		`opts={"a":1}`:         `{"opts":{"a":1}}`,
		`opts=[{"a":1}]`:       `{"opts":[{"a":1}]}`,
		`opts={"a":1} opts={}`: `{"opts":[{"a":1},{}]}`,
		"opts={a":              `{"opts":["{a"]}`,
		"tags=null":            `{"tags":null}`,
		"tags=null tags=x":     `{"tags":["null","x"]}`,
		`tags=["a"]`:           `{"tags":["a"]}`,
	} {
		if got, err := Pairs(strings.Fields(words), []byte(schema)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", words, got, err, want)
		}
	}
}

// The names are a plugin's: they forge no line, and are not endless.
func TestKeysOfAPlugin(t *testing.T) {
	types := map[string][]string{"a\nok: forged\x1b[2J": nil, strings.Repeat("b", 1000): nil}
	want := `a\nok: forged\x1b[2J= ` + strings.Repeat("b", maxKeyRunes-1) + "…="
	if got := keys(types); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for i := range 1000 {
		types[fmt.Sprint("c", i)] = nil
	}
	if got := keys(types); len(got) > maxKeys*maxKeyRunes || !strings.HasSuffix(got, "= and 972 more") {
		t.Errorf("%.300q", got)
	}
}

func TestWhole(t *testing.T) {
	for _, test := range []struct{ value, stdin, want string }{
		{`{"a":1}`, "", `{"a":1}`},
		{"-", `{"b":2}`, `{"b":2}`},
		{"[1]", "", ""},
		{"null", "", ""},
		{"", "", ""},
		{"-", "{", ""},
	} {
		got, err := Whole(test.value, strings.NewReader(test.stdin))
		if (err == nil) != (test.want != "") || string(got) != test.want {
			t.Errorf("%q, stdin %q: %s, %v; want %q", test.value, test.stdin, got, err, test.want)
		}
	}
	if _, err := Whole("-", strings.NewReader(strings.Repeat(" ", maxBytes+1))); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("endless stdin: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("CALLARGS_SET", "v")
	got := Environment([]string{"A=1", "CALLARGS_SET", "CALLARGS_UNSET", "B="})
	if want := []string{"A=1", "CALLARGS_SET=v", "B="}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
