package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// A reader finds each package in docs/architecture.md, and each line that its table promises.
func TestArchitecture(t *testing.T) {
	page := read(t, filepath.Join(root, "docs", "architecture.md"))
	packages, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		below, inner := strings.CutPrefix(p.Path, "supervisor/internal/")
		if leaf(p.Path) || room(p.Path) == "examples" || inner && strings.Contains(page, "`"+below+"`") {
			continue
		}
		if !strings.Contains(page, "`"+p.Path+"`") {
			t.Errorf("docs/architecture.md does not name %s", p.Path)
		}
	}
	_, table, _ := strings.Cut(page, "\n## Where is the line that")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[3], "`") {
			continue
		}
		rows++
		functions, files := quoted.FindAllStringSubmatch(cells[2], -1), quoted.FindAllStringSubmatch(cells[3], -1)
		if len(functions) != len(files) {
			t.Errorf("%d functions in %d files: %s", len(functions), len(files), line)
			continue
		}
		for i, name := range functions {
			code, err := os.ReadFile(filepath.Join(root, files[i][1]))
			if err != nil || !defines(string(code), name[1]) {
				t.Errorf("%s is not in %s (%v)", name[1], files[i][1], err)
			}
		}
	}
	if rows < 10 {
		t.Errorf("the table has %d rows", rows)
	}
}

// defines says whether Go or C code has the function: of a type, if the name has one.
func defines(code, name string) bool {
	pattern := `\nfunc ` + name + `\(|\n[a-z][^\n=;]*\b` + name + `\([^;]*\n?\{`
	if of, method, ok := strings.Cut(name, "."); ok {
		pattern = `\nfunc \([a-z]+ \*?` + of + `\) ` + method + `\(`
	}
	return regexp.MustCompile(pattern).MatchString(code)
}
