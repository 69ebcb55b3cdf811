package command

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func list(values ...string) (out []json.RawMessage) {
	for _, v := range values {
		out = append(out, raw(v))
	}
	return out
}

// argv splits at spaces; ~ stands for one inside a word.
func argv(s string) []string {
	words := strings.Fields(s)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "~", " ")
	}
	return words
}

func TestCheckAccepts(t *testing.T) {
	optional := func(name string) Param { return Param{Name: name, Required: new(bool)} }
	for name, spec := range map[string]Spec{
		"no parameters":          {Argv: argv("git status")},
		"attached":               {Argv: argv("rg --regexp={pattern} {path}")},
		"short attached":         {Argv: argv("rg -e{pattern} -- {path}")},
		"code":                   {Argv: argv("python3 -c {code}")},
		"code behind --":         {Argv: argv("bash -c -- {code}")},
		"code behind =":          {Argv: argv("node --eval={code}")},
		"values behind the code": {Argv: argv(`bash -c grep~"$1" name {pattern}`)},
		"a script's own -c":      {Argv: argv("python3 tool.py -c conf-{env}.yml")},
		"a module's own -c":      {Argv: argv("python3 -m pytest -c conf-{env}.ini")},
		"awk's -v":               {Argv: argv("awk -v from={from} {{print~from}} {file}")},
		"jq's --arg":             {Argv: argv("jq -r --arg name {name} .[$name] {dir}/data.json")},
		"awk's program in file":  {Argv: argv("awk -f prog.awk {dir}/data")},
		"sqlite's statement":     {Argv: argv("sqlite3 -readonly {db} {sql}")},
		"arrays":                 {Argv: argv("rg --glob={globs...} -- {pattern} {paths...}")},
		"a whole array":          {Argv: argv("cat -- {paths}"), Params: []Param{{Name: "paths", Type: TypeArray}}},
		"an option in two words": {Argv: argv("rg {max?-m} {max} -- {pattern}")},
		"a flag":                 {Argv: argv("ls {all?-a} -- {path}")},
		"a flag before it":       {Argv: argv("ls {all?-a} {path} x"), Params: []Param{optional("path")}},
		"an optional last word":  {Argv: argv("ls -l {path}"), Params: []Param{optional("path")}},
		"optional behind --":     {Argv: argv("git log --oneline -- {path} x"), Params: []Param{optional("path")}},
		"wrapped":                {Argv: argv("env -u HOME LANG={lang} timeout -k 1 {seconds} nice -n5 python3 -c {code}")},
		"literal braces":         {Argv: argv("find {dir} -exec cat {{}} ;")},
		"a dash behind --":       {Argv: argv("x -- {a}"), Params: []Param{{Name: "a", Type: TypeInteger, Default: raw("-5")}}},
		"a dash behind python's": {Argv: argv("python3 -Wignore -c code -- {a}"), Params: []Param{{Name: "a", Type: TypeInteger, Default: raw("-1")}}},
		"a dash behind node's":   {Argv: argv("node -e code -- {a}"), Params: []Param{{Name: "a", Type: TypeInteger, Default: raw("-1")}}},
		"a dash behind perl's":   {Argv: argv("timeout 5 perl -we code -- x {a}"), Params: []Param{{Name: "a", Type: TypeInteger, Default: raw("-1")}}},
		"a dash behind a code":   {Argv: argv("python3 -c {code} -- {a}"), Params: []Param{{Name: "a", Type: TypeInteger, Default: raw("-1")}}},
		"a dash allowed":         {Argv: argv("x {a}"), Params: []Param{{Name: "a", Type: TypeInteger, Default: raw("-5"), AllowDash: true}}},
		"a dash in a word":       {Argv: argv("x --y={a}"), Params: []Param{{Name: "a", Default: raw(`"-5"`)}}},
		"a dash on stdin":        {Argv: argv("x"), Stdin: "a", Params: []Param{{Name: "a", Default: raw(`"-5"`)}}},
		"a dash for python":      {Argv: argv("python3 -c {a}"), Params: []Param{{Name: "a", Default: raw(`"-5"`)}}},
		"find's command":         {Argv: argv("find {dir} -name {name} -exec grep -e{text} {{}} ;")},
		"git's own -c":           {Argv: argv("git -C {dir} commit -c {commit} -m{message}")},
		"git grep":               {Argv: argv("git -c core.pager=cat grep -e{text} -- {paths...}")},
		"tar":                    {Argv: argv("tar -C {dir} --checkpoint={n} -czf {file} --exclude={x} -- {paths...}")},
		"tar's file":             {Argv: argv("tar -x -f{file} -C{dir} --to-stdout {x}")},
		"rg's pretty":            {Argv: argv("rg --pretty --pre-glob={glob} -e{x}")},
		"perl's file":            {Argv: argv("perl -Mstrict -I{dir} -MData::Dumper a.pl -M{x}")},
		"a script's --import":    {Argv: argv("node a.js --import={x}")},
		"ssh's host":             {Argv: argv("ssh -o BatchMode=yes -p {port} {host} uptime")},
		"make's target":          {Argv: argv("make -C {dir} {target}")},
		"behind --":              {Argv: argv("rg -- {pattern} --pre={x}")},
		"stdin":                  {Argv: argv("cat"), Stdin: "{text}"},
		"stdin by name":          {Argv: argv("cat"), Stdin: "text"},
		"shell": {
			Argv: []string{`rg "$pattern" ${path} "$@" | awk '{ print }'`}, Shell: true,
			Params: []Param{{Name: "pattern"}, optional("path"), {Name: "more", Type: TypeArray}},
		},
		"shell's stdin":   {Argv: []string{"wc -c"}, Shell: true, Stdin: "theText", Params: []Param{{Name: "theText"}}},
		"a timeout":       {Argv: argv("sleep 1"), TimeoutArgument: "timeout_ms"},
		"a timeout given": {Argv: argv("curl {timeout_ms?--max} {timeout_ms}"), TimeoutArgument: "timeout_ms"},
		"exit codes":      {Argv: argv("grep x"), ExitCodes: map[int]Outcome{0: {}, 1: {OK: true}, 255: {}}},
		"everything declared": {Argv: argv("x {s} {i} {n} {b} {a}"), Format: FormatNDJSON, Params: []Param{
			{Name: "s", Enum: list(`"a"`, ` "-b" `), Default: raw(`"a"`)},
			{Name: "i", Type: TypeInteger, Min: new(1.0), Max: new(9.0), Default: raw(`1`)},
			{Name: "n", Type: TypeNumber, Enum: list("1e3", "0.5")},
			{Name: "b", Type: TypeBoolean, Default: raw(`true`)},
			{Name: "a", Type: TypeArray, Items: TypeString, Pattern: "^x", Default: raw(`["xy"]`)},
		}},
	} {
		if problems := spec.Check(); problems != nil {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

// Each of these has one mistake, told at the right place with the value.
func TestCheckRefuses(t *testing.T) {
	param := func(p Param) Spec { return Spec{Argv: argv("x {a}"), Params: []Param{p}} }
	array := func(line string) Spec { return Spec{Argv: argv(line), Params: []Param{{Name: "a", Type: TypeArray}}} }
	optional := func(line string) Spec {
		return Spec{Argv: argv(line), Params: []Param{{Name: "a", Required: new(bool)}}}
	}
	shell := func(script string, params ...Param) Spec {
		return Spec{Argv: []string{script}, Shell: true, Params: params}
	}
	for name, test := range map[string]struct {
		spec       Spec
		path, text string
	}{
		"nothing":                 {Spec{}, "argv", "no command"},
		"a variable command":      {Spec{Argv: argv("{a}")}, "argv[0]", `"{a}"`},
		"a partly variable one":   {Spec{Argv: argv("/bin/{a}")}, "argv[0]", "without placeholders"},
		"an empty one":            {Spec{Argv: []string{""}}, "argv[0]", "not a command"},
		"NUL":                     {Spec{Argv: []string{"x", "a\x00b"}}, "argv[1]", "NUL"},
		"a long word":             {Spec{Argv: []string{"x", strings.Repeat("a", maxWordBytes+1)}}, "argv[1]", "131071"},
		"an open brace":           {Spec{Argv: argv("x a{b")}, "argv[1]", "{{"},
		"a closing brace":         {Spec{Argv: argv("x a}b")}, "argv[1]", "}}"},
		"an empty placeholder":    {Spec{Argv: argv("find -exec cat {} ;")}, "argv[3]", "{{"},
		"a bad placeholder":       {Spec{Argv: argv("x {a.b}")}, "argv[1]", `"{a.b}"`},
		"nested placeholders":     {Spec{Argv: argv("x {a?{b}}")}, "argv[1]", "{{"},
		"a partial condition":     {Spec{Argv: argv("x y{a?z}")}, "argv[1]", "whole word"},
		"two conditions":          {Spec{Argv: argv("x {a?y}{b?z}")}, "argv[1]", "whole word"},
		"a condition for nothing": {Spec{Argv: argv("x {a?}")}, "argv[1]", "{a?--flag}"},
		"a constant condition":    {Spec{Argv: argv("x {a?-y} {a}"), Params: []Param{{Name: "a"}}}, "argv[1]", "every call, since a always has a value: write the word alone, or set params.a.required: false, without a default"},
		"two arrays in a word":    {Spec{Argv: argv("x {a...}{b...}")}, "argv[1]", "two arrays"},
		"an array in a word":      {array("x --y={a}"), "argv[1]", "{a...}"},
		"each of no array":        {Spec{Argv: argv("x {a...}"), Params: []Param{{Name: "a"}}}, "argv[1]", "not an array"},
		"a variable option":       {Spec{Argv: argv("x -{a}")}, "argv[1]", "--name={value}"},
		"a variable long option":  {Spec{Argv: argv("x --{a}")}, "argv[1]", "which option"},
		"an open long option":     {Spec{Argv: argv("x --no{a}")}, "argv[1]", "which option"},
		"an open cluster":         {Spec{Argv: argv("x -xyz{a}")}, "argv[1]", "which option"},
		"an option that swallows": {optional("x -m {a} y"), "argv[2]", "-m{a}"},
		"a long one":              {optional("x --max {a} y"), "argv[2]", "--max={a}"},
		"an array after one":      {array("x -m {a...} y"), "argv[2]", "next word"},
		"another's condition":     {Spec{Argv: argv("x {b?-m} {a} y"), Params: []Param{{Name: "a", Required: new(bool)}, {Name: "b", Required: new(bool)}}}, "argv[2]", "next word"},

		"no name":              {param(Param{Name: "a b"}), "params[0].name", `"a b"`},
		"a reserved name":      {param(Param{Name: "_meta"}), "params[0].name", "_meta"},
		"a name twice":         {Spec{Argv: argv("x {a}"), Params: []Param{{Name: "a"}, {Name: "a"}}}, "params[1].name", "twice"},
		"unused":               {Spec{Argv: argv("x"), Params: []Param{{Name: "a"}}}, "params.a", "{a}"},
		"a type":               {param(Param{Name: "a", Type: "str"}), "params.a.type", `"str"`},
		"items":                {param(Param{Name: "a", Items: "string"}), "params.a.items", "array"},
		"a type of items":      {param(Param{Name: "a", Type: TypeArray, Items: "array"}), "params.a.items", "boolean"},
		"a pattern":            {param(Param{Name: "a", Pattern: "("}), "params.a.pattern", `"("`},
		"a pattern of numbers": {param(Param{Name: "a", Type: TypeNumber, Pattern: "1"}), "params.a.pattern", "strings"},
		"a bound":              {param(Param{Name: "a", Max: new(1.0)}), "params.a.max", "numbers"},
		"infinity":             {param(Param{Name: "a", Type: TypeNumber, Max: new(math.Inf(1))}), "params.a.max", "not a number"},
		"crossed bounds":       {param(Param{Name: "a", Type: TypeNumber, Min: new(2.0), Max: new(1.0)}), "params.a.min", "above"},
		"an enum's type":       {param(Param{Name: "a", Enum: list(`"x"`, `1`)}), "params.a.enum[1]", "must be a string"},
		"an enum's syntax":     {param(Param{Name: "a", Enum: list(`x`)}), "params.a.enum[0]", "must be a string"},
		"a default's type":     {param(Param{Name: "a", Type: TypeInteger, Default: raw("1.5")}), "params.a.default", "1.5"},
		"a number unquoted":    {param(Param{Name: "a", Default: raw("5")}), "params.a.default", `"5": the value must be a string, not "5": quote it, or declare type: integer`},
		"a word for a number":  {param(Param{Name: "a", Type: TypeInteger, Default: raw(`"5"`)}), "params.a.default", ": take its quotes off, or declare type: string"},
		"a flag for a number":  {param(Param{Name: "a", Type: TypeNumber, Enum: list(`true`)}), "params.a.enum[0]", ": declare type: boolean"},
		"an item's type":       {Spec{Argv: argv("x {a...}"), Params: []Param{{Name: "a", Type: TypeArray, Default: raw(`["b",5]`)}}}, "params.a.default", ": quote it, or declare items: integer"},
		"an item alone":        {Spec{Argv: argv("x {a...}"), Params: []Param{{Name: "a", Type: TypeArray, Default: raw(`"b"`)}}}, "params.a.default", `: write it as a list, ["b"]`},
		"a default's value":    {param(Param{Name: "a", Enum: list(`"x"`), Default: raw(`"y"`)}), "params.a.default", "one of"},
		"a dashed default":     {param(Param{Name: "a", Default: raw(`"-x"`)}), "params.a.default", "allowDash: true"},
		"a negative default":   {param(Param{Name: "a", Type: TypeInteger, Default: raw("-5")}), "params.a.default", "or write the word -- before it"},
		"a dashed item":        {Spec{Argv: argv("x {a...}"), Params: []Param{{Name: "a", Type: TypeArray, Default: raw(`["b","-x"]`)}}}, "params.a.default", `"-x"`},
		"a script's default":   {shell(`x "$a"`, Param{Name: "a", Type: TypeNumber, Default: raw("-0.5")}), "params.a.default", "allowDash: true"},
		"a shell's own --":     {Spec{Argv: argv("bash -c rg~$1 -- {a}"), Params: []Param{{Name: "a", Type: TypeInteger, Default: raw("-5")}}}, "params.a.default", "allowDash: true; the -- before it is only an argument"},
		"a -- behind a script": {Spec{Argv: argv("perl -e 1 {b?-x} -- {a}"), Params: []Param{{Name: "a", Default: raw(`"-5"`)}}}, "params.a.default", "allowDash: true; the -- before it"},
		"a -- that is parsed":  {Spec{Argv: argv("perl -se 1 -- {a}"), Params: []Param{{Name: "a", Default: raw(`"-5"`)}}}, "params.a.default", "allowDash: true; the -- before it"},
		"a -- for an option":   {Spec{Argv: argv("python3 -c 1 -W -- {a}"), Params: []Param{{Name: "a", Default: raw(`"-5"`)}}}, "params.a.default", "allowDash: true; the -- before it"},
		"a -- for code":        {Spec{Argv: argv("node -e -- {a}"), Params: []Param{{Name: "a", Default: raw(`"-5"`)}}}, "params.a.default", "allowDash: true; the -- before it"},
		"a -- too late":        {Spec{Argv: argv("python3 -c 1 {a} -- x"), Params: []Param{{Name: "a", Default: raw(`"-5"`)}}}, "params.a.default", "or write the word --"},
		"not used in a script": {shell(`x`, Param{Name: "a"}), "params.a", `write "$a"`},
		"an array's in one":    {shell(`x`, Param{Name: "a", Type: TypeArray}), "params.a", `write "$@"`},
		"default and required": {param(Param{Name: "a", Default: raw(`"y"`), Required: new(true)}), "params.a.required", "default"},

		"stdin":            {Spec{Argv: argv("x"), Stdin: "a {b}"}, "stdin", "one parameter"},
		"stdin's braces":   {Spec{Argv: argv("x"), Stdin: "{b"}, "stdin", `"{b"`},
		"an array's stdin": {Spec{Argv: argv("x {a...}"), Stdin: "a"}, "stdin", "array"},
		"an exit code":     {Spec{Argv: argv("x"), ExitCodes: map[int]Outcome{300: {}}}, "exitCodes.300", "255"},
		"a format":         {Spec{Argv: argv("x"), Format: "xml"}, "format", `"xml"`},
		"a timeout":        {Spec{Argv: argv("x"), TimeoutArgument: "a b"}, "timeoutArgument", "a b"},
		"a timeout's type": {Spec{Argv: argv("x {a}"), TimeoutArgument: "a", Params: []Param{{Name: "a", Required: new(true)}}}, "timeoutArgument", "integer"},

		"two scripts":         {Spec{Argv: argv("a b"), Shell: true}, "argv", "one script"},
		"no script":           {shell(" "), "argv[0]", "empty"},
		"a script as option":  {shell("-x"), "argv[0]", "space"},
		"pasted in a script":  {shell("rg {pattern}"), "argv[0]", `"$name"`},
		"two lists":           {shell(`x "$@"`, Param{Name: "a", Type: TypeArray}, Param{Name: "b", Type: TypeArray}), "params", "arrays"},
		"sh's own variable":   {shell(`echo "$PATH"`, Param{Name: "PATH"}), "params.PATH", "lower-case"},
		"a dash in a name":    {shell(`echo "$a-b"`, Param{Name: "a-b"}), "params.a-b", "lower-case"},
		"unused in a script":  {shell(`echo "$ab"`, Param{Name: "a"}), "params.a", "uses it"},
		"unused list":         {shell(`echo`, Param{Name: "a", Type: TypeArray}), "params.a", "uses it"},
		"a variable applet":   {Spec{Argv: argv("busybox {a}")}, "argv[1]", "busybox"},
		"a variable command2": {Spec{Argv: argv("env -i A=b {a}")}, "argv[3]", "env"},
		"a number of words":   {array("timeout {a...} ls"), "argv[1]", "timeout"},
	} {
		problems := test.spec.Check()
		if len(problems) != 1 || problems[0].Path != test.path || !strings.Contains(problems[0].Text, test.text) {
			t.Errorf("%s: %v, want one at %s with %s", name, problems, test.path, test.text)
		}
		if _, err := test.spec.Build(nil); err == nil || !strings.Contains(err.Error(), "misconfigured") {
			t.Errorf("%s: built all the same: %v", name, err)
		}
	}
}

// A value inside of code would be code, whoever runs it and however deep.
func TestCheckFindsCode(t *testing.T) {
	for _, line := range []string{
		"sh -c echo~{a}", "bash -lc echo~{a}", "bash -ec echo~{a}", "/usr/bin/bash -c echo~{a}", "bash -o pipefail -c echo~{a}",
		"bash -eo pipefail -c echo~{a}", "bash --norc -c echo~{a}", "bash --rcfile f -c echo~{a}", "bash --unknown f -c echo~{a}", "zsh +o x -c echo~{a}",
		"bash -c -- echo~{a}", "bash -c -x echo~{a}", "sh -c {a}{b}", "sh -c {{{a}}}", "sh -c{a}",
		"python3 -c print({a})", "python3.12 -c print({a})", "/opt/x/bin/python -c print({a})", "pypy3 -c print({a})", "python3 -Sc print({a})",
		"python3 -W ignore -c print({a})", "python3 -c{a}", "python3 -cprint({a})", "python3 {a...} -c print({b})",
		"node -e f({a})", "node --eval f({a})", "node --eval=f({a})", "node -p f({a})", "node -pe f({a})", "node -r x -e f({a})", "nodejs -e f({a})",
		"perl -e f({a})", "perl -ne f({a})", "perl -i.bak -pe f({a})", "perl -0777ne f({a})", "perl -ef({a})", "perl -lane f({a})", "ruby -e f({a})", "ruby -rjson -ne f({a})",
		"php -r f({a});",
		"env A=b python3 -c f({a})", "timeout 5 sh -c echo~{a}", "timeout {s} sh -c echo~{a}", "nice -n 5 sh -c echo~{a}", "sudo -u x sh -c echo~{a}", "busybox sh -c echo~{a}",
		"xargs -n 1 sh -c echo~{a}", "env timeout 5 nice stdbuf -oL python3 -c f({a})", "find . -exec sh -c echo~{a} ;", "docker exec c bash -lc echo~{a}", "unknown --x sh -c echo~{a}",
		// A word that may be absent lets the next one become code.
		"sh -c {a?code} {b}", "python3 -c {a...}",
	} {
		problems := Spec{Argv: argv(line)}.Check()
		if !slices.ContainsFunc(problems, func(p Problem) bool { return strings.Contains(p.Text, "code") }) {
			t.Errorf("%s: %v", line, problems)
		}
	}
	optional := Spec{Argv: argv("sh -c {a} {b}"), Params: []Param{{Name: "a", Required: new(bool)}}}
	if problems := optional.Check(); len(problems) == 0 {
		t.Error("with an optional code, the next value would be code")
	}
}
