package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"a b  c\t d\ne":        {"a", "b", "c", "d", "e"},
		`'a b' "c d" e\ f`:     {"a b", "c d", "e f"},
		`a'b'"c"d`:             {"abcd"},
		`'' ""`:                {"", ""},
		`"a\"b" "a\nb" '\'`:    {`a"b`, `a\nb`, `\`},
		`'a|b' "*" \; \#`:      {"a|b", "*", ";", "#"},
		`-e {p} {x...} {q?-v}`: nil, // a question mark outside of quotes
		`-e {p} {x...}`:        {"-e", "{p}", "{x...}"},
		`a ${B}/c $$D e$ $1`:   {"a", "${B}/c", "$$D", "e$", "$1"},
		`a '$B' "$B" \$B b=c`:  {"a", "$B", "$B", "$B", "b=c"},
		`env A=b c`:            {"env", "A=b", "c"},
	} {
		got, wrong := split(text)
		if want == nil && wrong == "" || want != nil && (wrong != "" || !reflect.DeepEqual(got, want)) {
			t.Errorf("%s is split into %q (%s), want %q", text, got, wrong, want)
		}
	}
	for _, text := range []string{"a|b", "a;b", "a&", "a>b", "a<b", "`a`", "$(a)", "(a)", "*.go", "a?", "[a]", "#a", "'a", `"a`, `a\`, "a $B", "a x$B", "a $b-c", "A=b c", " A= c"} {
		if got, wrong := split(text); wrong == "" {
			t.Errorf("%s is split into %q", text, got)
		}
	}
}

// What a variable holds is never a placeholder, and never more than one word.
func TestVariablesInCommands(t *testing.T) {
	l := mustLoad(t, `tools: {t: {command: [echo, --, "${EVIL}", "x${EVIL}y", "$${a}", "${NONE:-{{b}}}", "{c}", "$1"]}}`, "EVIL={c} 'd' {{")
	want := []string{"echo", "--", "{{c}} 'd' {{{{", "x{{c}} 'd' {{{{y", "${a}", "{{{{b}}", "{c}", "$1"}
	got := l.Tools[0].Command.Argv
	if !reflect.DeepEqual(got[:5], want[:5]) || !reflect.DeepEqual(got[6:], want[6:]) {
		t.Errorf("words %q, want %q", got, want)
	}
}

func TestNothingIsExpandedForAShell(t *testing.T) {
	const script = `echo "$HOME" ${x:-1} $$ ~/a`
	l := mustLoad(t, "tools: {t: {shell: true, command: '"+script+"'}}")
	if got := l.Tools[0].Command.Argv; !reflect.DeepEqual(got, []string{script}) {
		t.Errorf("script %q", got)
	}
	if len(l.Warnings) != 0 {
		t.Errorf("warnings %v", l.Warnings)
	}
}

func TestExpand(t *testing.T) {
	m := sut(nil, "A=1", "EMPTY=", "NESTED=${A}")
	r := reader{machine: m, report: &report{}}
	for text, want := range map[string]string{
		"x${A}y": "x1y", "$A": "$A", "$": "$", "$$": "$", "$${A}": "${A}", "${EMPTY}": "", "${EMPTY:-d}": "d", "${NO:-}": "", "${NO:-a:-b}": "a:-b", "${NESTED}": "${A}",
		"a$b$": "a$b$",
	} {
		if got, wrong := r.expand(text, nil); wrong != "" || got != want {
			t.Errorf("%s is %q (%s), want %q", text, got, wrong, want)
		}
	}
	for _, text := range []string{"${NO}", "${", "${}", "${1}", "${a-b}", "${A"} {
		if got, wrong := r.expand(text, nil); wrong == "" {
			t.Errorf("%s is %q", text, got)
		}
	}
	r.machine.Environ = []string{"BIG=" + strings.Repeat("x", 1000)}
	if _, wrong := r.expand(strings.Repeat("${BIG}", 1000), nil); !strings.Contains(wrong, "longer than 64 KiB") {
		t.Errorf("not bounded: %s", wrong)
	}
}

func TestPaths(t *testing.T) {
	for text, want := range map[string]string{
		"a": "/etc/th/a", "./a/../b": "/etc/th/b", "../x": "/etc/x", "/a//b/": "/a/b", "~": "/home/me", "~/a": "/home/me/a", "${HOME}/b": "/home/me/b", "a~b": "/etc/th/a~b",
	} {
		if got := mustLoad(t, "state: \""+text+"\"").State; got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestCommandsBesideTheFile(t *testing.T) {
	l, err := loadFiles(t, map[string]string{
		"/etc/th/toolhost.yaml": "include: ['{odd}/x.yaml']",
		"/etc/th/{odd}/x.yaml":  "tools: {a: {command: [./run, x]}, b: {command: [run, ./x]}, c: {mcp: [../bin/grep]}}",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Tools[0].Command.Argv[0]; got != "/etc/th/{{odd}}/run" {
		t.Errorf("the command is %s", got)
	}
	if got := l.Tools[0].Command.Program(); got != "/etc/th/{odd}/run" {
		t.Errorf("the program is %s", got)
	}
	if got := l.Tools[1].Command.Argv; !reflect.DeepEqual(got, []string{"run", "./x"}) {
		t.Errorf("the command is %q", got)
	}
	if got := l.Tools[2].MCP.Argv[0]; got != "/etc/th/bin/grep" {
		t.Errorf("the server is %s", got)
	}
	l = mustLoad(t, "tools: {a: {mcp: [./nosuch]}}")
	if len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0].Message, "names /etc/th/nosuch, which does not exist") {
		t.Errorf("warnings %v", l.Warnings)
	}
}
