package command

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a table says of a program is tried on the program itself. Those that CI
// installs must be there.

func words(random *rand.Rand, n int) (out []string) {
	for range n {
		out = append(out, randomValue(random))
	}
	return out
}

func TestPython(t *testing.T) {
	installed(t, "python3", true)
	values := append(words(rand.New(rand.NewPCG(1, 1)), 200), nasty...)
	behind := Spec{
		Argv:   []string{"python3", "-c", "import sys, os; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))", "{values...}"},
		Params: []Param{{Name: "values", Type: TypeArray, AllowDash: true}},
	}
	if got := strings.Split(run(t, build(t, behind, map[string]any{"values": values})), "\x00"); !slices.Equal(got, values) {
		t.Errorf("values: %q, want %q", got, values)
	}
	code := Spec{Argv: argv("python3 -c {code}")}
	for source, want := range map[string]string{"print('a\"$b')\nprint(1)": "a\"$b\n1\n", "-1": "", "--help": "error", "": ""} {
		got, err := try(build(t, code, map[string]string{"code": source}))
		if want == "error" {
			// It is read as Python, not as an option: twice minus help.
			if err == nil || !strings.Contains(got, "TypeError") {
				t.Errorf("%q: %q, %v", source, got, err)
			}
		} else if got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", source, got, err, want)
		}
	}
	stdin := Spec{Argv: argv("python3 -"), Stdin: "{code}"}
	if got := run(t, build(t, stdin, map[string]string{"code": "-1\nprint(2)"})); got != "2\n" {
		t.Errorf("stdin: %q", got)
	}
}

func TestPerl(t *testing.T) {
	installed(t, "perl", false)
	for source, want := range map[string]string{"print 'a$b'": "a$b", "-1": "", "-v": ""} {
		if got := run(t, build(t, Spec{Argv: argv("perl -e {code}")}, map[string]string{"code": source})); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}

// Behind the code a -- ends the options of these, and so what follows it may
// begin with a dash.
func TestDashBehindCode(t *testing.T) {
	for program, line := range map[string]struct {
		argv []string
		kept bool // the code sees the -- as well
		must bool
	}{
		"python3": {[]string{"python3", "-c", "import sys; print(*sys.argv[1:], sep='\\n')", "--", "{values...}"}, true, true},
		"perl":    {[]string{"perl", "-e", "print map { \"$_\\n\" } @ARGV", "--", "{values...}"}, false, false},
		"node":    {[]string{"node", "-e", "for (const v of process.argv.slice(1)) console.log(v)", "--", "{values...}"}, false, false},
	} {
		t.Run(program, func(t *testing.T) {
			installed(t, program, line.must)
			line.argv[2] = strings.NewReplacer("{ ", "{{ ", " }", " }}").Replace(line.argv[2])
			values := []string{"-a", "--help", "-c", "--", "-e", "--version", "-1"}
			want := strings.Join(values, "\n") + "\n"
			if line.kept {
				want = "--\n" + want
			}
			if got := run(t, build(t, Spec{Argv: line.argv}, map[string]any{"values": values})); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// Why a dash is refused where the others may have one: bash would read it as an
// option and the next value as the code.
func TestShellsTakeCodeForOptions(t *testing.T) {
	out, err := exec.Command("bash", "-c", "-x", "echo became code").Output()
	if err != nil || string(out) != "became code\n" {
		t.Fatalf("%q, %v: the rule is not needed", out, err)
	}
	if _, err := (Spec{Argv: argv("bash -c {code} {value}")}).Build(raw(`{"code":"-x","value":"echo became code"}`)); err == nil {
		t.Error("built")
	}
	spec := Spec{Argv: argv("bash -c -- {code} name {value}"), Params: []Param{{Name: "value", AllowDash: true}}}
	if got := run(t, build(t, spec, map[string]string{"code": `printf %s "$1"`, "value": "-x;id"})); got != "-x;id" {
		t.Errorf("%q", got)
	}
}

func TestNode(t *testing.T) {
	installed(t, "node", false)
	random := rand.New(rand.NewPCG(1, 2))
	spec := Spec{
		Argv:   argv("node -e console.log(JSON.stringify(process.argv.slice(1))) -- {values...}"),
		Params: []Param{{Name: "values", Type: TypeArray, AllowDash: true}},
	}
	values := append(words(random, 100), nasty...)
	var got []string
	if err := json.Unmarshal([]byte(run(t, build(t, spec, map[string]any{"values": values}))), &got); err != nil || !slices.Equal(got, values) {
		t.Errorf("%q, %v, want %q", got, err, values)
	}
	for _, line := range []string{"node -e {code}", "node --eval={code}", "node -pe {code}"} {
		if got := run(t, build(t, Spec{Argv: argv(line)}, map[string]string{"code": "console.log(\"a'$b\")"})); !strings.HasPrefix(got, "a'$b\n") {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func TestJq(t *testing.T) {
	installed(t, "jq", false)
	data := `{"a":{"b":1},"x y":"z"}`
	byName := Spec{Argv: argv("jq -c --arg name {name} .[$name] --"), Stdin: "{json}", Params: []Param{{Name: "name", AllowDash: true}}, Format: FormatJSON}
	for name, want := range map[string]string{"a": `{"b":1}`, "x y": `"z"`, `"] | env | ["`: "null", "--help": "null", "-n": "null"} {
		if got := run(t, build(t, byName, map[string]string{"name": name, "json": data})); strings.TrimSpace(got) != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	filter := Spec{Argv: argv("jq -c {filter}"), Stdin: "json"}
	if got := run(t, build(t, filter, map[string]string{"filter": `[.a.b, "{json}"]`, "json": data})); got != "[1,\"{json}\"]\n" {
		t.Errorf("%q", got)
	}
}

func TestGit(t *testing.T) {
	installed(t, "git", true)
	dir := t.TempDir()
	env := []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + dir, "GIT_DIR=" + dir + "/.git", "GIT_WORK_TREE=" + dir}
	run(t, Built{Argv: []string{"git", "init", "-q", dir}}, env...)
	if err := os.WriteFile(filepath.Join(dir, "-f {x}"), []byte("one $(id)\ntwo -x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, Built{Argv: []string{"git", "-C", dir, "add", "."}}, env...)
	grep := Spec{
		Argv:   []string{"git", "-C", dir, "grep", "{ignore_case?-i}", "{context?-C}", "{context}", "-F", "-e{pattern}", "--", "{paths...}"},
		Params: []Param{{Name: "context", Type: TypeInteger, Required: new(bool), Min: new(0.0)}},
		ExitCodes: map[int]Outcome{
			1: {OK: true, Message: "no match"},
		},
	}
	for pattern, want := range map[string]string{"$(id)": "-f {x}:one $(id)\n", "-x": "-f {x}:two -x\n", "TWO": "-f {x}:two -x\n"} {
		arguments := map[string]any{"pattern": pattern, "paths": []string{"-f {x}"}, "ignore_case": true}
		if got := run(t, build(t, grep, arguments), env...); got != want {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
	got := run(t, build(t, grep, map[string]any{"pattern": "two", "paths": []string{}, "context": 1}), env...)
	if got != "-f {x}-one $(id)\n-f {x}:two -x\n" {
		t.Errorf("with context: %q", got)
	}
}

func TestSqlite(t *testing.T) {
	installed(t, "sqlite3", false)
	spec := Spec{Argv: argv("sqlite3 -readonly -json {db} {sql}"), Format: FormatJSON}
	got := run(t, build(t, spec, map[string]string{"db": ":memory:", "sql": `select '$(id)' as a, "b" from (select 1 as b)`}))
	if got != "[{\"a\":\"$(id)\",\"b\":1}]\n" {
		t.Errorf("%q", got)
	}
	if _, err := spec.Build(raw(`{"db":":memory:","sql":"-cmd"}`)); err == nil {
		t.Error("an option for a statement")
	}
}

func TestRipgrep(t *testing.T) {
	installed(t, "rg", false)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("--pre=id\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Argv: argv("rg --no-heading {max?-m} {max} -- {pattern} {paths...}")}
	if got := run(t, build(t, spec, map[string]any{"pattern": "--pre=id", "paths": []string{dir + "/f"}, "max": "1"})); got != "--pre=id\n" {
		t.Errorf("%q", got)
	}
}

func TestScript(t *testing.T) {
	bash := installed(t, "bash", true)
	script := filepath.Join(t.TempDir(), "tool.sh")
	if err := os.WriteFile(script, []byte("#!"+bash+"\nprintf '[%s]' \"$@\"\ncat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Argv: []string{script, "--name={name}", "{all?--all}", "--", "{rest...}"}, Stdin: "{text}"}
	got := run(t, build(t, spec, map[string]any{"name": "$(id) *", "rest": []string{"-x", "", "{name}"}, "text": "in", "all": true}))
	if got != "[--name=$(id) *][--all][--][-x][][{name}]in" {
		t.Errorf("%q", got)
	}
}

// awk's own way of taking a value: data, whatever it holds.
func TestAwk(t *testing.T) {
	installed(t, "awk", true)
	spec := Spec{Argv: []string{"awk", "-v", "want={want}", "index($0, want) {{ print NR }}"}, Stdin: "{text}"}
	got := run(t, build(t, spec, map[string]string{"want": `"; system("id")`, "text": "a\nx \"; system(\"id\") y\n"}))
	if got != "2\n" {
		t.Errorf("%q", got)
	}
}
