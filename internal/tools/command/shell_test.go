package command

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// installed finds a program; a test that needs one that is not there is skipped,
// except where it should be.
func installed(t *testing.T, program string, expected bool) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil && expected && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed, though it should be here", program)
	}
	if err != nil {
		t.Skipf("%s is not installed", program)
	}
	return path
}

// run executes what Build gave.
func run(t *testing.T, built Built, env ...string) (stdout string) {
	t.Helper()
	out, err := try(built, env...)
	if err != nil {
		t.Fatalf("%q: %v: %s", built.Argv, err, out)
	}
	return out
}

func try(built Built, env ...string) (output string, err error) {
	cmd := exec.Command(built.Argv[0], built.Argv[1:]...)
	cmd.Stdin = bytes.NewReader(built.Stdin)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

func build(t *testing.T, spec Spec, arguments any) Built {
	t.Helper()
	for _, problem := range spec.Check() {
		t.Fatal(problem)
	}
	built, err := spec.Build(marshal(t, arguments))
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// shells that may be a system's sh.
func shells(t *testing.T) (paths []string) {
	for _, shell := range [][]string{{"sh"}, {"dash"}, {"bash", "--posix"}, {"bash"}, {"busybox", "sh"}, {"ksh"}, {"mksh"}, {"zsh", "--emulate", "sh"}} {
		if _, err := exec.LookPath(shell[0]); err == nil {
			paths = append(paths, strings.Join(shell, " "))
		} else {
			t.Logf("%s is not installed", shell[0])
		}
	}
	return paths
}

// randomValue is one that is nasty, or several.
func randomValue(random *rand.Rand) string {
	value := ""
	for range 1 + random.IntN(3) {
		value += nasty[random.IntN(len(nasty))]
	}
	return value
}

// Real shells see each value as the one word that it is.
func TestShellValuesStayValues(t *testing.T) {
	spec := Spec{
		Argv:  []string{`printf '%s\0' "$first" "${second}" "${absent-none}" "$flag" "$number" "$#" "$@"`},
		Shell: true,
		Params: []Param{
			{Name: "first", AllowDash: true},
			{Name: "second", AllowDash: true},
			{Name: "absent", Required: new(bool)},
			{Name: "flag", Type: TypeBoolean},
			{Name: "number", Type: TypeNumber},
			{Name: "rest", Type: TypeArray, AllowDash: true},
		},
	}
	for _, shell := range shells(t) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 150 {
			first, second, rest := randomValue(random), randomValue(random), []string{}
			for range random.IntN(12) {
				rest = append(rest, randomValue(random))
			}
			built := build(t, spec, map[string]any{"first": first, "second": second, "flag": true, "number": json.Number("1e3"), "rest": rest})
			built.Argv = append(strings.Fields(shell), built.Argv[1:]...)
			want := append([]string{first, second, "none", "true", "1e3", itoa(len(rest))}, rest...)
			// What the environment holds under a parameter's name is not a value of it.
			got := strings.Split(strings.TrimSuffix(run(t, built, "absent=env", "IFS=/", "ENV=/dev/null"), "\x00"), "\x00")
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %q, want %q", shell, got, want)
			}
		}
	}
}

func itoa(n int) string { return string(json.RawMessage(marshalled(n))) }

func marshalled(v any) []byte {
	raw, _ := json.Marshal(v)
	return raw
}

// A value is not passed on in the environment, not even where a variable of
// that name was.
func TestShellExportsNoValue(t *testing.T) {
	spec := Spec{Argv: []string{`test -n "$secret_name"; env`}, Shell: true, Params: []Param{{Name: "secret_name"}}}
	out := run(t, build(t, spec, map[string]string{"secret_name": "value-of-it"}), "secret_name=before")
	if strings.Contains(out, "secret_name") {
		t.Errorf("environment: %s", out)
	}
}

// Ten parameters and more: ${10} is not ${1}0.
func TestShellManyParameters(t *testing.T) {
	spec := Spec{Argv: []string{`echo`}, Shell: true}
	arguments, want := map[string]string{}, ""
	for _, letter := range "abcdefghijklm" {
		name := string(letter) + "x"
		spec.Params = append(spec.Params, Param{Name: name})
		spec.Argv[0] += ` "$` + name + `"`
		arguments[name] = strings.ToUpper(name)
		want += " " + arguments[name]
	}
	if got := run(t, build(t, spec, arguments)); got != want[1:]+"\n" {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestShellWithoutParameters(t *testing.T) {
	for script, want := range map[string]string{
		"echo $#; false || echo ok": "0\nok\n",
		"# a comment\necho a":       "a\n",
		"cat <<EOF\n{x y}\nEOF\n":   "{x y}\n",
		"\n\necho $0":               "sh\n",
	} {
		if got := run(t, build(t, Spec{Argv: []string{script}, Shell: true}, map[string]any{})); got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}

// What stdin takes is too long for a variable.
func TestShellStdin(t *testing.T) {
	spec := Spec{Argv: []string{`wc -c; echo "${text-unset} $a"`}, Shell: true, Stdin: "text", Params: []Param{{Name: "text"}, {Name: "a"}}}
	got := run(t, build(t, spec, map[string]string{"text": strings.Repeat("-x", 1<<20), "a": "b"}))
	if strings.Fields(got)[0] != "2097152" || !strings.Contains(got, "unset b") {
		t.Errorf("%q", got)
	}
}
