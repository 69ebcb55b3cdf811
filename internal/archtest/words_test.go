package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowedWords lists findings that stay, one a line: a file, a space, and a part of the finding's text.
const allowedWords = "words.allow"

func TestWords(t *testing.T) {
	allowed := allowances(t)
	err := walk(root, func(name, rel string) error {
		if strings.HasSuffix(name, "_test.go") || filepath.Dir(rel) == filepath.FromSlash(archtest) {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		for _, f := range Words(filepath.ToSlash(rel), set, file) {
			if !allowed.covers(f) {
				t.Error(f)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for entry, used := range allowed {
		if !used {
			t.Errorf("%s: %q allows nothing: remove it", allowedWords, entry)
		}
	}
}

// TestWordsOfDocs holds what users read to the same; decisions are as they were written.
func TestWordsOfDocs(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages: ", err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := strings.ReplaceAll(string(text), "hat is ", "hat's ") // pages may say what is promised, and what is not
		for _, f := range wording(prose) {
			t.Errorf("%s: %s: write %s", filepath.Base(page), f.Text, f.Instead)
		}
	}
}

// allowlist holds for each entry whether a finding has needed it.
type allowlist map[string]bool

func allowances(t *testing.T) allowlist {
	t.Helper()
	data, err := os.ReadFile(allowedWords)
	if err != nil {
		t.Fatal(err)
	}
	list := allowlist{}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list[line] = false
		}
	}
	return list
}

func (a allowlist) covers(f Finding) bool {
	for entry := range a {
		if file, part, _ := strings.Cut(entry, " "); file == f.File && part != "" && strings.Contains(f.Text, part) {
			a[entry] = true
			return true
		}
	}
	return false
}

func TestWordsAreFound(t *testing.T) {
	source := "// Package p tells of\n// things.\npackage p\n\n" +
		"// T is a type of which nothing is said.\ntype T struct {\n\t// F is none.\n\tF int `help:\"is no size\"`\n}\n\n" +
		"var a = \"mode \" + \"x is none\"\nvar b = `there is no file, it is no longer here`\n" +
		"func f() { _ = \"whoever calls\" /* is none */; _ = \"a list, of which one\" }\n" +
		"func hurryUp() {}\n\ntype t struct{ isVeiled, available bool }\n"
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	for _, f := range Words("p.go", set, file) {
		lines = append(lines, f.Line)
	}
	if want := []int{1, 5, 7, 8, 11, 13, 13, 14, 16}; !slices.Equal(lines, want) {
		t.Errorf("found in lines %v, want %v", lines, want)
	}
}

func TestWording(t *testing.T) {
	for text, want := range map[string]int{
		`"x" is none`:                      1,
		"is no size":                       1,
		"these are no sizes":               1,
		"there is no such tool":            0,
		"there are no tools":               0,
		"is no longer running":             0,
		"is no more than 5":                0,
		"Whoever calls":                    1,
		"what is refused is said":          1,
		"what is it?":                      0,
		"Of which there are two":           1,
		"two lists, one of which is":       0,
		"a call of which nothing is known": 1,
		"the value, nil if there is none":  1,
		"it told of\nthe end":              1,
		"a file that there is not":         1,
		"none of them is":                  1,
		"must be one of: yes, ask, no":     0,
		"a mode that is none of the two":   1,
	} {
		if found := wording(text); len(found) != want {
			t.Errorf("%q: %v, want %d", text, found, want)
		}
	}
}
