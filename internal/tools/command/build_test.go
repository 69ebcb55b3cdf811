package command

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugin/wirejson"
)

func TestBuild(t *testing.T) {
	optional := new(bool)
	for name, test := range map[string]struct {
		spec      Spec
		arguments string
		want      string // words as argv takes them; _ is an empty one
	}{
		"no arguments":       {Spec{Argv: argv("git status")}, ``, "git status"},
		"one value":          {Spec{Argv: argv("rg {pattern}")}, `{"pattern":"a b"}`, "rg a~b"},
		"shell signs":        {Spec{Argv: argv("rg {pattern}")}, `{"pattern":"$(id);` + "`id`" + `*'\""}`, "rg $(id);`id`*'\""},
		"placeholders":       {Spec{Argv: argv("x {a} {b}")}, `{"a":"{b}","b":"{a}{{}}"}`, "x {b} {a}{{}}"},
		"literal braces":     {Spec{Argv: argv("x {{{a}}} {{}} {{a}}")}, `{"a":"1"}`, "x {1} {} {a}"},
		"empty":              {Spec{Argv: argv("x {a} --b={a} c{a}")}, `{"a":""}`, "x _ --b= c"},
		"attached dash":      {Spec{Argv: argv("x --a={a} -b{a} c={a} /{a}")}, `{"a":"-v"}`, "x --a=-v -b-v c=-v /-v"},
		"dash behind --":     {Spec{Argv: argv("x -- {a}")}, `{"a":"-v"}`, "x -- -v"},
		"dash allowed":       {Spec{Argv: argv("x {a}"), Params: []Param{{Name: "a", AllowDash: true}}}, `{"a":"-v"}`, "x -v"},
		"dash listed":        {Spec{Argv: argv("x {a}"), Params: []Param{{Name: "a", Enum: list(`"-v"`)}}}, `{"a":"-v"}`, "x -v"},
		"dash as code":       {Spec{Argv: argv("python3 -c {a}")}, `{"a":"-1"}`, "python3 -c -1"},
		"dash as sh's code":  {Spec{Argv: argv("sh -c -- {a}")}, `{"a":"-1"}`, "sh -c -- -1"},
		"numbers as written": {Spec{Argv: argv("x {a} {b}"), Params: []Param{{Name: "a", Type: TypeNumber}, {Name: "b", Type: TypeInteger}}}, `{"a":1E3,"b":123456789012345678901234567890}`, "x 1E3 123456789012345678901234567890"},
		"a boolean's text":   {Spec{Argv: argv("x --color={a}"), Params: []Param{{Name: "a", Type: TypeBoolean}}}, `{"a":false}`, "x --color=false"},
		"no boolean":         {Spec{Argv: argv("x --color={a}"), Params: []Param{{Name: "a", Type: TypeBoolean}}}, `{}`, "x"},
		"a flag":             {Spec{Argv: argv("x {a?--all} {b?--b} {c?-c}")}, `{"a":true,"b":false}`, "x --all"},
		"an option given":    {Spec{Argv: argv("x {a?-m} {a} --n={a} y")}, `{"a":"5"}`, "x -m 5 --n=5 y"},
		"an option absent":   {Spec{Argv: argv("x {a?-m} {a} --n={a} y")}, `{}`, "x y"},
		"a default":          {Spec{Argv: argv("x {a}"), Params: []Param{{Name: "a", Default: raw(`"d"`)}}}, `{}`, "x d"},
		"a default replaced": {Spec{Argv: argv("x {a}"), Params: []Param{{Name: "a", Default: raw(`"d"`)}}}, `{"a":"e"}`, "x e"},
		"an array":           {Spec{Argv: argv("x {a...} y")}, `{"a":["1 2","","{b}"]}`, "x 1~2 _ {b} y"},
		"no items":           {Spec{Argv: argv("x {a...} {a?--} --g={a...}")}, `{"a":[]}`, "x"},
		"a repeated word":    {Spec{Argv: argv("x --g={d}/{a...}")}, `{"a":["1","-2"],"d":"z"}`, "x --g=z/1 --g=z/-2"},
		"a conditional --":   {Spec{Argv: argv("x {a?--} {a...}")}, `{"a":["-1"]}`, "x -- -1"},
		"a typed array":      {Spec{Argv: argv("x {a}"), Params: []Param{{Name: "a", Type: TypeArray, Items: TypeInteger}}}, `{"a":[1,2]}`, "x 1 2"},
		"optional and absent": {
			Spec{Argv: argv("x {a} {a}{b} {b}"), Params: []Param{{Name: "a", Required: optional}}}, `{"b":"1"}`, "x 1",
		},
		"the host's timeout": {Spec{Argv: argv("x"), TimeoutArgument: "ms"}, `{"ms":5}`, "x"},
	} {
		built, err := test.spec.Build(raw(test.arguments))
		want := argv(test.want)
		for i := range want {
			want[i] = strings.TrimPrefix(want[i], "_")
		}
		if err != nil || !slices.Equal(built.Argv, want) || built.Stdin != nil {
			t.Errorf("%s: %q, %v, want %q; %v", name, built.Argv, err, want, test.spec.Check())
		}
	}
}

func TestBuildStdin(t *testing.T) {
	spec := Spec{Argv: argv("cat"), Stdin: "{text}", Params: []Param{{Name: "text", Required: new(bool)}}}
	for arguments, want := range map[string]string{`{}`: "", `{"text":"-rf {x}\n"}`: "-rf {x}\n", `{"text":""}`: ""} {
		built, err := spec.Build(raw(arguments))
		if err != nil || string(built.Stdin) != want || !slices.Equal(built.Argv, []string{"cat"}) {
			t.Errorf("%s: %q, %v", arguments, built, err)
		}
	}
}

// Errors are for the model: they name the parameter and the rule.
func TestBuildRefuses(t *testing.T) {
	typed := func(p Param) Spec { return Spec{Argv: argv("x {a}"), Params: []Param{p}} }
	long := strings.Repeat("a", maxWordBytes)
	plain := Spec{Argv: argv("x {a}")}
	for name, test := range map[string]struct {
		spec            Spec
		arguments       string
		param, contains string
	}{
		"no object":              {plain, `[]`, "", "JSON object"},
		"null":                   {plain, `null`, "", "JSON object"},
		"no JSON":                {plain, `{"a":`, "", "JSON object"},
		"an unknown one":         {plain, `{"a":"1","b":2}`, "b", "it has a"},
		"a missing one":          {plain, `{}`, "a", "required"},
		"NUL":                    {plain, `{"a":"x\u0000y"}`, "a", "NUL"},
		"NUL in words and stdin": {Spec{Argv: argv("x {a}"), Stdin: "a"}, `{"a":"\u0000"}`, "a", "NUL"},
		"a number below 0":       {Spec{Argv: argv("x {a}"), Params: []Param{{Name: "a", Type: TypeInteger}}}, `{"a":-5}`, "a", "allowDash: true"},
		"one for a script":       {Spec{Argv: []string{`x "$a"`}, Shell: true, Params: []Param{{Name: "a", Type: TypeNumber}}}, `{"a":-5}`, "a", "give none below 0"},
		"a dash":                 {plain, `{"a":"-rf"}`, "a", `"-rf"`},
		"a lone dash":            {plain, `{"a":"-"}`, "a", "option"},
		"a negative number":      {typed(Param{Name: "a", Type: TypeInteger}), `{"a":-1}`, "a", "option"},
		"a dash in an item":      {Spec{Argv: argv("x {a...}")}, `{"a":["x","--y"]}`, "a", `"--y"`},
		"a dash behind nothing":  {Spec{Argv: argv("x {b}{a}")}, `{"a":"-x","b":""}`, "a", "option"},
		"nothing before a dash":  {Spec{Argv: argv("x {a}-f")}, `{"a":""}`, "a", `"-f"`},
		"nothing behind -n":      {Spec{Argv: argv("x -n{a} y")}, `{"a":""}`, "a", "word after it"},
		"a dash to sh":           {Spec{Argv: argv("sh -c {a}")}, `{"a":"-x"}`, "a", "space in front"},
		"a dash behind code --":  {Spec{Argv: argv("sh -c x -- {a}")}, `{"a":"-x"}`, "a", "option"},
		"another's --":           {Spec{Argv: argv("env -- x {a}")}, `{"a":"-x"}`, "a", "option"},
		"a passer's --":          {Spec{Argv: argv("npm run x -- {a}")}, `{"a":"-x"}`, "a", "option"},
		"-- behind the value":    {Spec{Argv: argv("x {a} --")}, `{"a":"-x"}`, "a", "option"},
		"no code of its own":     {Spec{Argv: argv("rg python3 -c {a}")}, `{"a":"--pre=x"}`, "a", "option"},
		"a script's -c":          {Spec{Argv: argv("python3 x.py -c {a}")}, `{"a":"-x"}`, "a", "option"},
		"a string":               {plain, `{"a":5}`, "a", "must be a string, not"},
		"null for a string":      {plain, `{"a":null}`, "a", "must be a string"},
		"an integer's fraction":  {typed(Param{Name: "a", Type: TypeInteger}), `{"a":1.5}`, "a", "whole number"},
		"an integer's exponent":  {typed(Param{Name: "a", Type: TypeInteger}), `{"a":1e3}`, "a", "plain digits"},
		"a number's type":        {typed(Param{Name: "a", Type: TypeNumber}), `{"a":"1"}`, "a", "must be a number"},
		"a number's length":      {typed(Param{Name: "a", Type: TypeNumber}), `{"a":` + strings.Repeat("1", wirejson.MaxNumberBytes+1) + `}`, "a", "1000"},
		"a boolean":              {typed(Param{Name: "a", Type: TypeBoolean}), `{"a":"true"}`, "a", "true or false"},
		"an array":               {typed(Param{Name: "a", Type: TypeArray}), `{"a":"x"}`, "a", "array"},
		"null for an array":      {typed(Param{Name: "a", Type: TypeArray}), `{"a":null}`, "a", "array"},
		"an item":                {typed(Param{Name: "a", Type: TypeArray}), `{"a":["x",[]]}`, "a", "item 1 must be a string"},
		"an enum":                {typed(Param{Name: "a", Enum: list(`"x"`, `"y"`)}), `{"a":"z"}`, "a", `one of "x", "y"`},
		"a pattern":              {typed(Param{Name: "a", Pattern: "^[a-z]+$"}), `{"a":"a\nb"}`, "a", "match"},
		"too small":              {typed(Param{Name: "a", Type: TypeNumber, Min: new(1.0)}), `{"a":0.99999999999999999999}`, "a", "at least 1"},
		"too large":              {typed(Param{Name: "a", Type: TypeInteger, Max: new(9007199254740992.0)}), `{"a":9007199254740993}`, "a", "at most"},
		"beyond counting":        {typed(Param{Name: "a", Type: TypeNumber, Max: new(1.0)}), `{"a":1e99999999999999999999}`, "a", "range"},
		"a long word":            {plain, `{"a":"` + long + `a"}`, "a", "stdin"},
		"a long attached one":    {Spec{Argv: argv("x --a={a}")}, `{"a":"` + long + `"}`, "a", "stdin"},
		"too much in all":        {Spec{Argv: argv("x {b} {a...}")}, `{"b":"1","a":["` + strings.Repeat(long+`","`, 8) + `"]}`, "a", "in all"},
		"many empty words":       {Spec{Argv: argv("x {a...}")}, `{"a":[` + strings.Repeat(`"",`, maxArgvBytes/wordCost) + `""]}`, "a", "in all"},
		"a dash to a script":     {Spec{Argv: []string{`x "$a"`}, Shell: true, Params: []Param{{Name: "a"}}}, `{"a":"-x"}`, "a", "option"},
		"a long one to a script": {Spec{Argv: []string{`x "$a"`}, Shell: true, Params: []Param{{Name: "a"}}}, `{"a":"` + long + `a"}`, "a", "stdin"},
	} {
		built, err := test.spec.Build(raw(test.arguments))
		wrong, ok := errors.AsType[*ArgumentError](err)
		if !ok || wrong.Param != test.param || !strings.Contains(err.Error(), test.contains) || len(err.Error()) > 400 {
			t.Errorf("%s: %v, want %s: ...%s...; %v", name, err, test.param, test.contains, test.spec.Check())
		}
		if built.Argv != nil {
			t.Errorf("%s: a command all the same", name)
		}
	}
}

// What just fits is taken.
func TestBuildLimits(t *testing.T) {
	value, _ := json.Marshal(map[string]string{"a": strings.Repeat("a", maxWordBytes)})
	if _, err := (Spec{Argv: argv("x {a}")}).Build(value); err != nil {
		t.Errorf("%.200s", err)
	}
}

func TestExit(t *testing.T) {
	spec := Spec{ExitCodes: map[int]Outcome{0: {OK: false, Message: "odd"}, 1: {OK: true, Message: "no match"}}}
	for code, want := range map[int]Outcome{0: {Message: "odd"}, 1: {OK: true, Message: "no match"}, 2: {}} {
		if got := spec.Exit(code); got != want {
			t.Errorf("%d: %+v", code, got)
		}
	}
	if !(Spec{}).Exit(0).OK {
		t.Error("0 is not a success")
	}
}

// No command line is in the way of what goes to stdin.
func TestStdinTakesNUL(t *testing.T) {
	for _, spec := range []Spec{{Argv: argv("cat"), Stdin: "a"}, {Argv: []string{"cat"}, Shell: true, Stdin: "a", Params: []Param{{Name: "a"}}}} {
		if got := run(t, build(t, spec, map[string]string{"a": "x\x00y"})); got != "x\x00y" {
			t.Errorf("%q of %+v", got, spec)
		}
	}
}

// A bound, or a value of a list, is the number that was written, however a call spells it.
func TestBoundsAreDecimal(t *testing.T) {
	numeric := func(p Param) Spec { return Spec{Argv: argv("x {a}"), Params: []Param{p}} }
	ratio := numeric(Param{Name: "a", Type: TypeNumber, Min: new(0.1), Max: new(0.7), Default: []byte("0.1")})
	if err := ratio.Check(); err != nil {
		t.Error(err)
	}
	for value, ok := range map[string]bool{"0.1": true, "0.10": true, "1e-1": true, "0.7": true, "7e-1": true, "0.09999999999999999999": false, "0.70000000000000000001": false} {
		if _, err := ratio.Build([]byte(`{"a":` + value + `}`)); (err == nil) != ok {
			t.Errorf("%s: %v", value, err)
		}
	}
	listed := numeric(Param{Name: "a", Type: TypeNumber, Enum: []json.RawMessage{[]byte("0.1")}})
	if _, err := listed.Build([]byte(`{"a":0.10}`)); err != nil {
		t.Error(err)
	}
}

// The program is the first word as a call has it, not as it is written.
func TestProgram(t *testing.T) {
	for want, spec := range map[string]Spec{
		"/x/{y}/run": {Argv: []string{"/x/{{y}}/run", "{{}}"}},
		"sh":         {Argv: []string{"ls"}, Shell: true},
		"":           {},
	} {
		if got := spec.Program(); got != want {
			t.Errorf("%+v: %q, want %q", spec, got, want)
		}
	}
}
