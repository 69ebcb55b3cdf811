package archtest

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

func TestTree(t *testing.T) {
	packages, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(packages, func(p Package) bool { return p.Path == archtest }) {
		t.Fatalf("bug: not even this package was found among %d", len(packages))
	}
	for _, violation := range Check(modulePath(t), packages) {
		t.Error(violation)
	}
}

func modulePath(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	path, ok := strings.CutPrefix(line, "module ")
	if !ok {
		t.Fatalf("go.mod begins with %q", line)
	}
	return path
}

// load reads the packages below dir.
func load(dir string) ([]Package, error) {
	files := map[string][]File{}
	err := walk(dir, func(name, rel string) error {
		file, err := parse(name)
		folder := filepath.ToSlash(filepath.Dir(rel))
		files[folder] = append(files[folder], file)
		return err
	})
	var packages []Package
	for path, files := range files {
		packages = append(packages, Package{Path: path, Files: files})
	}
	return packages, err
}

// walk visits the Go files below dir. It reads the folders itself instead of asking `go list`: so it sees the files of
// every platform, and go test knows which folders its cached result depends on.
func walk(dir string, visit func(name, rel string) error) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return enter(dir, name)
		case filepath.Ext(name) != ".go" || ignored(entry.Name()):
			return nil
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return visit(name, rel)
	})
}

// enter skips what the go command's ./... skips: hidden folders, test data, other modules.
func enter(root, dir string) error {
	if dir == root {
		return nil
	}
	if name := filepath.Base(dir); name == "testdata" || name == "vendor" || ignored(name) {
		return filepath.SkipDir
	}
	switch _, err := os.Stat(filepath.Join(dir, "go.mod")); {
	case err == nil:
		return filepath.SkipDir
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}

func ignored(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

func parse(name string) (File, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return File{}, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return File{}, err
	}
	f := File{
		Name:      filepath.Base(name),
		Test:      strings.HasSuffix(name, "_test.go"),
		Generated: ast.IsGenerated(parsed),
		Doc:       strings.TrimSpace(parsed.Doc.Text()) != "",
		Lines:     bytes.Count(source, []byte("\n")),
	}
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, err
		}
		f.Imports = append(f.Imports, path)
	}
	return f, nil
}
