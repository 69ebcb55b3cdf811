package command

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

func TestSchema(t *testing.T) {
	spec := Spec{
		Argv: argv("x {pattern} {max?-m} {max} {all?-a} {paths...} --level={level} {limits...}"), TimeoutArgument: "timeout_ms",
		Params: []Param{
			{Name: "level", Description: "how loud", Enum: list(`"low"`, `"high"`), Default: raw(`"low"`)},
			{Name: "limits", Type: TypeArray, Items: TypeInteger, Min: new(1.0), Max: new(5.0), Required: new(bool)},
			{Name: "pattern", Pattern: "."},
		},
	}
	want := `{"type":"object","properties":{` +
		`"level":{"type":"string","description":"how loud","default":"low","enum":["low","high"]},` +
		`"limits":{"type":"array","items":{"type":"integer","minimum":1,"maximum":5}},` +
		`"pattern":{"type":"string","pattern":"."},` +
		`"max":{"type":"string"},"all":{"type":"boolean"},"paths":{"type":"array","items":{"type":"string"}},` +
		`"timeout_ms":{"type":"integer","description":"timeout of the call in milliseconds","minimum":0}` +
		`},"required":["pattern","paths"],"additionalProperties":false}`
	if got := string(spec.Schema()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if problems := spec.Check(); problems != nil {
		t.Error(problems)
	}
}

func TestSchemaWithoutParameters(t *testing.T) {
	got := string(Spec{Argv: argv("git status")}.Schema())
	if got != `{"type":"object","properties":{},"additionalProperties":false}` {
		t.Error(got)
	}
}

// What Build takes the schema takes, and what only Build refuses is refused for
// one of the reasons that the schema cannot tell.
func TestSchemaAgreesWithBuild(t *testing.T) {
	values := []string{
		`"x"`, `""`, `"-x"`, `"low"`, `"\u0000"`, `null`, `true`, `false`, `0`, `1`, `1.0`, `1.5`, `1e0`, `6`, `-1`, `9007199254740993`, `[]`, `["x"]`, `["x","y"]`, `[1]`, `[null]`, `[[]]`, `{}`,
	}
	types := []Param{
		{},
		{Type: TypeInteger},
		{Type: TypeInteger, Min: new(1.0), Max: new(5.0)},
		{Type: TypeNumber},
		{Type: TypeNumber, Min: new(1.0)},
		{Type: TypeBoolean},
		{Type: TypeArray},
		{Type: TypeArray, Items: TypeInteger, Max: new(0.0)},
		{Enum: list(`"low"`, `"x"`)},
		{Type: TypeNumber, Enum: list(`1`, `1.5`)},
		{Type: TypeArray, Enum: list(`"x"`)},
		{Pattern: "^x?$"},
		{Default: raw(`"d"`)},
		{Required: new(bool)},
	}
	random := rand.New(rand.NewPCG(1, 1))
	built := 0
	for range 5000 {
		param := types[random.IntN(len(types))]
		param.Name = "a"
		spec := Spec{Argv: []string{"x", "{a}", "{b?-b}"}, Params: []Param{param}}
		if problems := spec.Check(); problems != nil {
			t.Fatal(problems)
		}
		var members []string
		for _, name := range []string{"a", "b", "c"} {
			if chance := map[string]int{"a": 10, "b": 3, "c": 1}[name]; random.IntN(11) < chance {
				members = append(members, `"`+name+`":`+values[random.IntN(len(values))])
			}
		}
		arguments := "{" + strings.Join(members, ",") + "}"
		valid := validate(t, spec.Schema(), arguments)
		_, err := spec.Build(raw(arguments))
		if err == nil {
			built++
		}
		if err == nil && valid != nil {
			t.Fatalf("%+v: Build takes %s, the schema says %v", param, arguments, valid)
		}
		if err != nil && valid == nil && !onlyBuilds(err.Error()) {
			t.Fatalf("%+v: the schema takes %s, Build says %v", param, arguments, err)
		}
	}
	if built < 300 {
		t.Errorf("%d built prove little", built)
	}
}

func onlyBuilds(reason string) bool {
	for _, rule := range []string{"NUL", "option", "plain digits", "space in front"} {
		if strings.Contains(reason, rule) {
			return true
		}
	}
	return false
}

func validate(t *testing.T, rawSchema json.RawMessage, arguments string) error {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(rawSchema, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(raw(arguments), &value); err != nil {
		t.Fatal(err)
	}
	return resolved.Validate(value)
}
