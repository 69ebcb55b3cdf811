package argrule

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/turn"
)

func rule(t *testing.T, mode turn.Mode, argument string, patterns ...string) Rule {
	t.Helper()
	r := Rule{Mode: mode, Argument: argument}
	for _, text := range patterns {
		p, wrong := Parse(text)
		if wrong != "" {
			t.Fatalf("%q %s", text, wrong)
		}
		r.Patterns = append(r.Patterns, p)
	}
	return r
}

var here = Tool{Dirs: []string{"/home/me", "/workspace"}}

// holds says whether a rule of these patterns, for the argument path, holds.
func holds(t *testing.T, arguments string, patterns ...string) bool {
	t.Helper()
	mode, _ := List{rule(t, turn.ModeDeny, "path", patterns...)}.Judge(json.RawMessage(arguments), here)
	return mode == turn.ModeDeny
}

func path1(value string) string {
	raw, _ := json.Marshal(map[string]string{"path": value})
	return string(raw)
}

// However a path is written, it is below a folder or it is not.
func TestPaths(t *testing.T) {
	for value, below := range map[string]bool{
		"/srv": true, "/srv/": true, "/srv/a/b": true, "/srv/./a": true, "//srv/a": true, " /srv/a": true, "/etc/../srv/a": true, "/srv/a b/ü\n": true,
		"file:///srv/a": true, "file:/srv/a": true, "FILE:///srv/%61": true,
		"/": false, "/srvx": false, "/srv/../etc/passwd": false, "/etc/srv/a": false, "/SRV/a": false, "/srv/a/../../x": false, "file:///srv/..%2fetc": false, "a/srv": false, "srv/a": false,
	} {
		if got := holds(t, path1(value), "/srv/**"); got != below {
			t.Errorf("%q: %v", value, got)
		}
		if got := holds(t, path1(value), "!/srv/**"); got == below {
			t.Errorf("not %q: %v", value, got)
		}
	}
}

// Where a text can mean several things, both kinds of rule hold.
func TestUnsureTextsHold(t *testing.T) {
	for _, arguments := range []string{
		path1("/srv/" + strings.Repeat("x", maxTextBytes)), path1("~/x"), path1("~root/x"), path1("$HOME/x"), path1("file://elsewhere/srv/x"), path1("file:%zz"),
		`{"path":"/srv/a","path":"/etc"}`, `[]`, `{`, `5`, "\"\xff\"",
		`{"path":["/srv/a"` + strings.Repeat(`,"/srv/a"`, maxTexts) + `]}`,
	} {
		if !holds(t, arguments, "/srv/**") || !holds(t, arguments, "!/srv/**") {
			t.Errorf("%.60s: %v, %v", arguments, holds(t, arguments, "/srv/**"), holds(t, arguments, "!/srv/**"))
		}
	}
	// Relative to one of the folders it may begin in, it would be below.
	if !holds(t, path1("../../home/me/x"), "/home/me/**") || !holds(t, path1("x"), "/home/me/**") || !holds(t, path1("x"), "!/home/me/**") {
		t.Error("a relative path")
	}
}

// Without the argument, or with nothing in it, it is surely not what it must be.
func TestMissingArguments(t *testing.T) {
	for _, arguments := range []string{``, `{}`, `{"path":null}`, `{"path":[]}`, `{"path":{}}`, `{"path":[null]}`, `{"Path":"/srv/a"}`, `{"other":"/srv/a"}`} {
		if holds(t, arguments, "/etc/**") || !holds(t, arguments, "!/srv/**") {
			t.Errorf("%s", arguments)
		}
	}
}

// What the tool takes for an argument that is left out counts as well; but a
// tool may not hold to it.
func TestDefaults(t *testing.T) {
	of := Tool{Defaults: map[string]json.RawMessage{"path": json.RawMessage(`"/etc/x"`)}}
	for arguments, want := range map[string]turn.Mode{`{}`: "deny", ``: "deny", `{"path":null}`: "deny", `{"path":"/srv"}`: ""} {
		if mode, _ := (List{rule(t, turn.ModeDeny, "path", "/etc/**")}).Judge(json.RawMessage(arguments), of); mode != want {
			t.Errorf("%s: %s", arguments, mode)
		}
	}
	if mode, _ := (List{rule(t, turn.ModeAsk, "path", "!/etc/**")}).Judge(nil, of); mode != turn.ModeAsk {
		t.Error("a default is no promise")
	}
}

// All that is in an argument counts, and arguments whose names differ in case.
func TestEverythingInAnArgument(t *testing.T) {
	for _, arguments := range []string{
		`{"path":["/srv/a","/etc/passwd"]}`, `{"path":{"from":"/srv/a","to":"/etc/passwd"}}`, `{"path":[[{"x":["/etc/passwd"]}]]}`,
		`{"path":"/srv/a","Path":"/etc/passwd"}`, `{"path":"/srv/a","PATH":["/etc"]}`,
	} {
		if !holds(t, arguments, "/etc/**") || !holds(t, arguments, "!/srv/**") {
			t.Errorf("%s", arguments)
		}
	}
	if holds(t, `{"path":["/srv/a","/srv/b"]}`, "!/srv/**") {
		t.Error("all of it is below")
	}
}

// The first pattern that matches decides.
func TestFirstMatch(t *testing.T) {
	for _, c := range []struct {
		value    string
		patterns []string
		want     bool
	}{
		{"/etc/hosts", []string{"!/etc/hosts", "/etc/**"}, false},
		{"/etc/passwd", []string{"!/etc/hosts", "/etc/**"}, true},
		{"/srv/a", []string{"!/etc/hosts", "/etc/**"}, false},
		{"/etc/hosts", []string{"/etc/**", "!/etc/hosts"}, true},
		{"/srv/a", []string{"!/srv/**", "!/home/**"}, false},
		{"/home/a", []string{"!/srv/**", "!/home/**"}, false},
		{"/etc/a", []string{"!/srv/**", "!/home/**"}, true},
	} {
		if got := holds(t, path1(c.value), c.patterns...); got != c.want {
			t.Errorf("%s by %q: %v", c.value, c.patterns, got)
		}
	}
	list := List{rule(t, turn.ModeAsk, "path", "!/srv/**"), rule(t, turn.ModeDeny, "path", "/srv/secret/**"), rule(t, turn.ModeDeny, "force", "true")}
	for arguments, want := range map[string]string{
		`{"path":"/srv/a"}`:                                   "",
		`{"path":"/etc"}`:                                     `ask: {path: "!/srv/**"}`,
		`{"path":"/srv/a/../secret/x"}`:                       `deny: {path: "/srv/secret/**"}`,
		`{"path":"/etc","force":true}`:                        `deny: {force: "true"}`,
		`{"path":"/srv/a","force":"true"}`:                    `deny: {force: "true"}`,
		`{"path":"/srv/a","force":false}`:                     "",
		`{"path":"/srv/a","path":"/srv/a"}`:                   `deny: {path: "/srv/secret/**"}`,
		`{"path":"/srv/a","force":{"really":[false,[true]]}}`: `deny: {force: "true"}`,
	} {
		mode, by := list.Judge(json.RawMessage(arguments), here)
		if by != want || want != "" && !strings.HasPrefix(want, string(mode)) {
			t.Errorf("%s: %s by %s", arguments, mode, by)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		{"rm *", "rm -rf /home", true},
		{"rm *", "rm", false},
		{"rm *", "RM x", false},
		{"main", "main", true},
		{"main", "mainly", false},
		{"m?in", "main", true},
		{"*.env", "/a/b/.env", true},
		{"a.c", "abc", false},
		{"*", "", true},
		{"(x)+|$", "(x)+|$", true},
		{"/srv/*", "/srv/a", true},
		{"/srv/*", "/srv/a/b", false},
		{"/srv/*/c", "/srv/a/c", true},
		{"/srv/**/c", "/srv/c", true},
		{"/srv/**/c", "/srv/a/b/c", true},
		{"/srv/**/c", "/srv/a/bc", false},
		{"/**", "/", true},
		{"/**", "/x/y", true},
		{"/", "/", true},
		{"/", "/x", false},
		{"**/.ssh/**", "/home/x/.ssh/id", true},
		{"**/.ssh/**", "/.ssh", true},
		{"**/.ssh/**", "x/.ssh/id", true},
		{"src/**", "src/a/b", true},
		{"src/**", "./src", true},
		{"src/**", "src/../x", false},
		{"src/**", "/home/me/src/a", true},
		{"src/**", "/elsewhere/src/a", false},
		{"https://example.org/**", "https://example.org/a", true},
		{"https://example.org/**", "HTTPS://u:p@EXAMPLE.org.:443/a?x#y", true},
		{"https://example.org/**", "https://example.org", true},
		{"https://example.org/pub/**", "https://example.org/pub/../a", false},
		{"https://example.org/**", "https://example.org.evil.com/", false},
		{"https://example.org/**", "https://example.org@evil.com/", false},
		{"https://*.example.org/**", "https://a.example.org/x", true},
		{"https://*.example.org/**", "https://evil.com/a.example.org/", false},
		{"https://*.example.org/**", "https://evil.com?.example.org/", false},
		{"https://*.example.org/**", "https://evil.com#.example.org/", false},
	} {
		if got := holds(t, path1(c.value), c.pattern); got != c.want {
			t.Errorf("%q by %q: %v", c.value, c.pattern, got)
		}
		if got := holds(t, path1(c.value), "!"+c.pattern); got == c.want {
			t.Errorf("%q by not %q: %v", c.value, c.pattern, got)
		}
	}
	for value, pattern := range map[string]string{" main ": "main", "/a/.env/x/..": "*.env"} {
		if !holds(t, path1(value), pattern) || !holds(t, path1(value), "!"+pattern) {
			t.Errorf("%q by %q", value, pattern)
		}
	}
	// What is no URL, or is one in part only, cannot be told.
	for _, value := range []string{`https://evil.com\.example.org/`, "example.org/a", "//example.org/a", "https:/example.org"} {
		if !holds(t, path1(value), "https://*.example.org/**") || !holds(t, path1(value), "!https://*.example.org/**") {
			t.Errorf("%q", value)
		}
	}
}

func TestWrongPatterns(t *testing.T) {
	for pattern, want := range map[string]string{
		"": "is empty", "!": "is empty", "/srv/": "write /srv/**", "/srv/../x": "write /x", "!//srv": "write /srv", "./a": "write a", "/srv/{a,b}": "several can stand in a list", "[ab]": "several",
		`a\b`: "has one of", strings.Repeat("x", 1025): "1024 bytes", strings.Repeat("a*", 17): "16 stars", "https://x/": "write https://x/**",
	} {
		if _, wrong := Parse(pattern); !strings.Contains(wrong, want) {
			t.Errorf("%.20q: %q, want %q", pattern, wrong, want)
		}
	}
}

// A pattern and a text that fit badly take no longer than others.
func FuzzJudge(f *testing.F) {
	f.Add("/srv/**/*/**/x", "/srv/a/b")
	f.Add("!**a**b**c**", strings.Repeat("abc", 100))
	f.Add("https://*/**", "https://x/y")
	f.Fuzz(func(t *testing.T, pattern, value string) {
		p, wrong := Parse(pattern)
		if wrong != "" {
			return
		}
		raw, err := json.Marshal(map[string]string{"x": value})
		if err != nil {
			t.Skip()
		}
		not := p
		not.not = !p.not
		one, _ := List{{turn.ModeDeny, "x", []Pattern{p}}}.Judge(raw, here)
		other, _ := List{{turn.ModeDeny, "x", []Pattern{not}}}.Judge(raw, here)
		if one == "" && other == "" {
			t.Errorf("%q: neither %q nor its contrary holds", value, pattern)
		}
	})
}

// A number matches by what float64 makes of it, and a large one by all its digits. It is
// surely what both are.
func TestNumbers(t *testing.T) {
	const id = "1234567890123456789"
	for arguments, patterns := range map[string][]string{
		`{"path":` + id + `}`:                          {id, "1234567890123456800", "!" + id},
		`{"path":1.234567890123456789e18}`:             {id},
		`{"path":[1, {"a":` + id + `.0}]}`:             {id, "1"},
		`{"path":1e3}`:                                 {"1000", "!1"},
		`{"path":1e21}`:                                {"1e+21", "1000000000000000000000"},
		`{"path":0.5}`:                                 {"0.5"},
		`{"path":` + strings.Repeat("9", 300) + `}`:    {strings.Repeat("9", 300)},
		`{"path":1e400}`:                               {"x", "!1*"},
		`{"path":1e1000001}`:                           {"x", "!1*"},
		`{"path":5.` + strings.Repeat("0", 1000) + `}`: {"x", "!5"},
	} {
		for _, pattern := range patterns {
			if !holds(t, arguments, pattern) {
				t.Errorf("%.60s: %.30q does not hold", arguments, pattern)
			}
		}
	}
	for arguments, patterns := range map[string][]string{
		`{"path":` + id + `}`:       {"1234567890123456788"},
		`{"path":5}`:                {"50", "!5"},
		`{"path":1000.0}`:           {"!1000"},
		`{"path":1e-999999}`:        {"1", "!0"},
		`{"path":0e999999999}`:      {"1", "!0"},
		`{"path":9007199254740992}`: {"!9007199254740992"},
	} {
		for _, pattern := range patterns {
			if holds(t, arguments, pattern) {
				t.Errorf("%s: %q holds", arguments, pattern)
			}
		}
	}
}

// Numbers that would be long texts are not written out, and there are no more texts than are
// compared.
func TestManyNumbers(t *testing.T) {
	for _, number := range []string{"1e999999", "1e-999999", "1e308"} {
		arguments := `{"path":[` + strings.Repeat(number+",", 100_000) + `1]}`
		if list, _ := readTexts(json.RawMessage(arguments), nil).of("path"); len(list) > maxTexts+1 || !holds(t, arguments, "x") {
			t.Errorf("%s: %d texts", number, len(list))
		}
	}
}
