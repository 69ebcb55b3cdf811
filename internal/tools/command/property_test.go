package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// nasty values mean something to shells, option parsers, templates and people.
var nasty = []string{
	"", " ", "a b", "'", `"`, `\`, "\n", "a\nb\n", "\t", "$(id)", "`id`", "${IFS}", "$1", "$@", "*", "?", "[a-z]", "~", "~root", "!!", "#", ";", "|", "&", "&&", ">f", "<f", "(", ")",
	"{a}", "{b}", "{xs...}", "{{", "}}", "{", "}", "{a?-x}", "-", "--", "-x", "-rf", "--help", "--pre=id", "-\n", "−x", "=", "a=b", "PATH=.", "%s%n", "@f", "é", "日本", "\u202e", "\ufeff", "\U0001f600", "\x7f", "\x1b[31m",
	"--; id", "'; id; '", "\"; id; \"", "$((1/0))", "a[$(id)]", "\r\n", "-c", "-e", "x -rf", " -rf",
}

// pieces of words that a random spec is made of.
var wordParts = []string{
	"{a}", "{b}", "{xs...}", "{opt}", "{n}", "{flag}", "{flag?--flag}", "{opt?-o}", "{xs?--}", "--", "-v", "x", "{{", "}}", "--opt={opt}", "--name={a}", "-n{n}", "{a}{b}", "{a}-{b}", "--x={xs...}", "f/{a}/{b}",
	"y={xs...}", "{a},{xs...}", "{{{a}}}", "-", "é{a}", "{b}x",
}

func randomSpec(random *rand.Rand) Spec {
	words := []string{"tool"}
	for range 1 + random.IntN(6) {
		words = append(words, wordParts[random.IntN(len(wordParts))])
	}
	spec := Spec{Argv: words}
	declare := func(p Param) {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{"+p.Name) }) {
			spec.Params = append(spec.Params, p)
		}
	}
	declare(Param{Name: "opt", Required: new(bool)})
	declare(Param{Name: "n", Type: TypeInteger})
	declare(Param{Name: "flag", Type: TypeBoolean})
	if random.IntN(4) == 0 {
		declare(Param{Name: "b", AllowDash: true})
	}
	return spec
}

// names of the parameters that a call of spec may give, by kind.
func randomArguments(random *rand.Rand, spec Spec, text func(name string, item int) string) map[string]any {
	p := compile(spec)
	arguments := map[string]any{}
	for _, param := range p.order {
		if !param.required && random.IntN(2) == 0 {
			continue
		}
		switch {
		case param.array:
			items := []string{}
			for i := range random.IntN(4) {
				items = append(items, text(param.Name, i))
			}
			arguments[param.Name] = items
		case param.kind == TypeInteger:
			arguments[param.Name] = random.IntN(100)
		case param.kind == TypeBoolean:
			arguments[param.Name] = random.IntN(2) == 0
		default:
			arguments[param.Name] = text(param.Name, 0)
		}
	}
	return arguments
}

// A value takes exactly the place that its placeholder had: what a call with
// any values gives is what the same call with harmless ones gives, with the
// values put in their place. So none is split, expanded, dropped or made
// anything else.
func TestValuesStayValues(t *testing.T) {
	built, refused := 0, 0
	for seed := range uint64(20000) {
		random := rand.New(rand.NewPCG(seed, 0))
		spec := randomSpec(random)
		if len(spec.Check()) > 0 {
			continue
		}
		inPlace := map[string]string{}
		harmless := randomArguments(random, spec, func(name string, item int) string {
			marker := fmt.Sprintf("<%s%d>", name, item)
			inPlace[marker] = nasty[random.IntN(len(nasty))]
			return marker
		})
		want := mustBuild(t, spec, harmless)
		got, err := spec.Build(marshal(t, replaced(harmless, inPlace)))
		if err != nil {
			refused++
			checkRefusal(t, seed, err, inPlace)
			continue
		}
		built++
		for i := range want {
			want[i] = replaceAll(want[i], inPlace)
		}
		if !slices.Equal(got.Argv, want) {
			t.Fatalf("seed %d: %q with %q: %q, want %q", seed, spec.Argv, inPlace, got.Argv, want)
		}
		checkOptions(t, seed, spec, got.Argv)
	}
	if built < 2000 || refused < 500 {
		t.Errorf("%d calls built and %d refused prove little", built, refused)
	}
}

func mustBuild(t *testing.T, spec Spec, arguments map[string]any) []string {
	t.Helper()
	built, err := spec.Build(marshal(t, arguments))
	if err != nil {
		t.Fatalf("%q: %v", spec.Argv, err)
	}
	return built.Argv
}

func marshal(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func replaced(arguments map[string]any, inPlace map[string]string) map[string]any {
	out := maps.Clone(arguments)
	for name, value := range out {
		switch value := value.(type) {
		case string:
			out[name] = inPlace[value]
		case []string:
			items := []string{}
			for _, marker := range value {
				items = append(items, inPlace[marker])
			}
			out[name] = items
		}
	}
	return out
}

// replaceAll replaces markers at once: a value may look like one.
func replaceAll(text string, inPlace map[string]string) string {
	var pairs []string
	for marker, value := range inPlace {
		pairs = append(pairs, marker, value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// checkRefusal: only a value with a dash in front, or an empty one, is refused.
func checkRefusal(t *testing.T, seed uint64, err error, inPlace map[string]string) {
	t.Helper()
	if _, ok := errors.AsType[*ArgumentError](err); !ok {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for _, value := range inPlace {
		if value == "" || strings.HasPrefix(value, "-") {
			return
		}
	}
	t.Fatalf("seed %d: %v, with %q", seed, err, inPlace)
}

// checkOptions: what looks like an option is one of the operator's own.
func checkOptions(t *testing.T, seed uint64, spec Spec, words []string) {
	t.Helper()
	for _, word := range words {
		if word == "--" {
			return
		}
		own := func(template string) bool {
			prefix, _, _ := strings.Cut(strings.TrimSuffix(template, "}"), "{")
			if _, flag, ok := strings.Cut(template, "?"); ok {
				prefix = strings.TrimSuffix(flag, "}")
			}
			return strings.HasPrefix(prefix, "-") && strings.HasPrefix(word, prefix)
		}
		allowed := slices.ContainsFunc(spec.Params, func(p Param) bool { return p.AllowDash })
		if strings.HasPrefix(word, "-") && !allowed && !slices.ContainsFunc(spec.Argv, own) {
			t.Fatalf("seed %d: %q of %q is an option", seed, word, spec.Argv)
		}
	}
}

// Any command line and any arguments: no panic, and what is built is sound.
func FuzzBuild(f *testing.F) {
	f.Add("rg\x00{max?-m}\x00{max}\x00--\x00{pattern}", `{"pattern":"-x","max":"5"}`, false, "")
	f.Add("sh\x00-c\x00{code}", `{"code":"-x"}`, false, "{text}")
	f.Add("python3\x00-c\x00{code}\x00{xs...}", `{"code":"-x","xs":["a"]}`, false, "")
	f.Add(`rg "$a"`, `{"a":"x"}`, true, "")
	f.Add("env\x00-S\x00{{a}}\x00{b...}{c}", `{"b":[1]}`, false, "b")
	f.Fuzz(func(t *testing.T, line, arguments string, shell bool, stdin string) {
		spec := Spec{Argv: strings.Split(line, "\x00"), Shell: shell, Stdin: stdin}
		problems := spec.Check()
		if schema := spec.Schema(); !json.Valid(schema) {
			t.Fatalf("schema %s", schema)
		}
		built, err := spec.Build(raw(arguments))
		switch {
		case len(problems) > 0 && err == nil:
			t.Fatalf("built in spite of %v", problems)
		case err != nil && built.Argv != nil, err == nil && len(built.Argv) == 0:
			t.Fatalf("%q with %v", built.Argv, err)
		}
		for _, word := range built.Argv {
			if strings.IndexByte(word, 0) >= 0 || len(word) > maxWordBytes {
				t.Fatalf("word %q", word)
			}
		}
	})
}
