package httpapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// The table of events in the docs has every kind that the code can emit and no
// other, and with each the fields that are written out where it is emitted.
func TestDocumentedEvents(t *testing.T) {
	t.Parallel()
	documented := eventTable(t)
	kinds := eventConstants(t)
	emitted := map[string][]string{"results": nil, "error": nil} // the ends of a batch's stream
	for _, dir := range []string{"turn", "supervisor", "supervisor/internal/*", "internal/journal", "internal/serve/httpapi"} {
		for _, file := range sources(t, dir) {
			emits(file, kinds, emitted)
		}
	}
	for name, kind := range kinds {
		if _, is := emitted[kind]; !is {
			t.Errorf("api.%s (%s) is emitted nowhere: emit it, or take it out", name, kind)
		}
	}
	if got, want := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(emitted)); !slices.Equal(got, want) {
		t.Errorf("documented are %q\nemitted are   %q", got, want)
	}
	tags := jsonNames(reflect.TypeFor[api.Event]())
	maps.Copy(tags, jsonNames(reflect.TypeFor[api.Gap]()))
	known := slices.Collect(maps.Values(tags))
	for kind, fields := range emitted {
		for _, field := range fields {
			if name := tags[field]; !slices.Contains(slices.Concat(everyEvents, documented[kind]), name) {
				t.Errorf("%s is emitted with %s, which its row lacks", kind, name)
			}
		}
		for _, name := range documented[kind] {
			if !slices.Contains(known, name) {
				t.Errorf("the row of %s has %s, which no event has", kind, name)
			}
		}
	}
}

// everyEvents are the fields that any event may have.
var everyEvents = []string{"seq", "time", "turnId", "kind", "toolCallId", "toolName", "missed"}

// eventTable reads the kinds of events and the fields beside each. A row for
// several kinds has the fields of all of them.
func eventTable(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../..", "docs/http-api.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(raw), "\n## Kinds of events\n")
	section, _, _ = strings.Cut(section, "\n## ")
	words := func(cell string) (list []string) {
		for _, m := range regexp.MustCompile("`([A-Za-z_]+)`").FindAllStringSubmatch(cell, -1) {
			list = append(list, m[1])
		}
		return list
	}
	table := map[string][]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, kind := range words(cells[1]) {
			table[kind] = words(cells[3])
		}
	}
	return table
}

// eventConstants are the kinds by the names of their constants in package api.
func eventConstants(t *testing.T) map[string]string {
	t.Helper()
	kinds := map[string]string{}
	for _, file := range sources(t, "api") {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Type == nil || len(spec.Values) != 1 {
				return true
			}
			if typed, ok := spec.Type.(*ast.Ident); ok && typed.Name == "EventKind" {
				kinds[spec.Names[0].Name], _ = strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			}
			return true
		})
	}
	return kinds
}

// sources parses a package's files but tests and deprecated aliases.
func sources(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join("../../..", dir, "*.go"))
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "deprecated.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// emits adds the kinds that a file names other than to compare with, each with the
// fields that stand beside it in a literal.
func emits(file *ast.File, kinds map[string]string, emitted map[string][]string) {
	kindOf := func(e ast.Expr) string {
		if selector, ok := e.(*ast.SelectorExpr); ok {
			return kinds[selector.Sel.Name]
		}
		return ""
	}
	var visit func(ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			return n.Op != token.EQL && n.Op != token.NEQ
		case *ast.CaseClause:
			for _, statement := range n.Body {
				ast.Inspect(statement, visit)
			}
			return false
		case *ast.CompositeLit:
			kind, fields := "", []string{}
			for _, element := range n.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok {
					if name, ok := pair.Key.(*ast.Ident); ok && name.Name == "Kind" {
						kind = kindOf(pair.Value)
					} else if ok {
						fields = append(fields, name.Name)
					}
				}
			}
			if kind != "" {
				emitted[kind] = append(emitted[kind], fields...)
			}
		case ast.Expr:
			if kind := kindOf(n); kind != "" {
				emitted[kind] = append(emitted[kind], nil...)
			}
		}
		return true
	}
	ast.Inspect(file, visit)
}

// jsonNames are those of a struct's fields.
func jsonNames(of reflect.Type) map[string]string {
	names := map[string]string{}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[field.Name] = name
	}
	return names
}
