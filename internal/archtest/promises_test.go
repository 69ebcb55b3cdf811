package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	goTest    = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
)

// Each test that the document on security names is there: a promise whose test was
// renamed or removed would no longer be checked.
func TestPromisesHaveTheirTests(t *testing.T) {
	const top = "../.."
	text, err := os.ReadFile(filepath.Join(top, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, found := range goTest.FindAllSubmatch(raw, -1) {
			there[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := namedTest.FindAllSubmatch(text, -1)
	for _, name := range named {
		if !there[string(name[1])] {
			t.Errorf("docs/security.md names %s, which is not there", name[1])
		}
	}
	if len(named) < 20 {
		t.Errorf("only %d tests are named", len(named))
	}
	attacks, err := os.ReadFile(filepath.Join(top, "internal", "serve", "console", "test", "browser", "attacks.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range regexp.MustCompile(`attacks\.mjs[^|]*`).FindAllString(string(text), -1) {
		for _, quoted := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(part, -1) {
			if !strings.Contains(string(attacks), "test('"+quoted[1]) {
				t.Errorf("docs/security.md names %q of attacks.mjs, which is not there", quoted[1])
			}
		}
	}
}
