package stage

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

var (
	function = regexp.MustCompile(`^func (Test\w+)\(`)
	inGo     = regexp.MustCompile(`^\tstage\.Of\(t, "(\w+)"\)`)
	inScript = regexp.MustCompile(`^\[!stage:(\w+)\] skip`)
)

// Each test that `make test` leaves out is run by a target, in .ci/run or make nightly, and stands in the table of CONTRIBUTING.md.
func TestEachStageIsRun(t *testing.T) {
	makefile, ci, table := read(t, "Makefile"), read(t, ".ci/run"), read(t, "CONTRIBUTING.md")
	staged := 0
	for test, stage := range stages(t) {
		staged++
		if !strings.Contains(makefile, "$(call stage,"+stage+",") {
			t.Errorf("no target of the Makefile runs stage %s of %s", stage, test)
		}
		if !strings.Contains(ci, " make "+stage+"\n") && !regexp.MustCompile(`\t\$\(MAKE\) .*\b`+stage+`\b`).MatchString(makefile) {
			t.Errorf("neither .ci/run nor make nightly runs stage %s of %s", stage, test)
		}
		if !regexp.MustCompile("(?m)^\\|.*`" + test + "`.*`make " + stage + "`").MatchString(table) {
			t.Errorf("CONTRIBUTING.md does not say that %s is run by make %s", test, stage)
		}
	}
	if staged == 0 {
		t.Error("no test of a stage was found")
	}
}

// stages maps the module's tests to their stages.
func stages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".txtar") {
			collect(t, path, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func collect(t *testing.T, path string, found map[string]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	test := "TestScripts/" + strings.TrimSuffix(filepath.Base(path), ".txtar")
	for line := range strings.Lines(string(text)) {
		if m := function.FindStringSubmatch(line); m != nil {
			test = m[1]
		}
		for _, mark := range []*regexp.Regexp{inGo, inScript} {
			if m := mark.FindStringSubmatch(line); m != nil {
				found[test] = m[1]
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
