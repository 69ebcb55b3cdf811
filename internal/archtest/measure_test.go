package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What was reached: the most methods and fields of a type, exported identifiers
// without a user, and packages outside the standard library that the small modules
// pull. A change that makes one smaller lowers it here; none may grow.
const (
	mostMethods = 69
	mostFields  = 33
	mostUnused  = 111
	clientPulls = 2
	pluginPulls = 118
)

// measured is what is counted of the module.
type measured struct {
	methods, fields map[string]int    // by package and type
	exported        map[string]string // package and name to where
	used            map[string]bool   // package and name, by another package
}

// measure counts hand-written code outside of tests.
func measure(t *testing.T) measured {
	t.Helper()
	m := measured{methods: map[string]int{}, fields: map[string]int{}, exported: map[string]string{}, used: map[string]bool{}}
	module := modulePath(t) + "/"
	err := walk(root, func(name, rel string) error {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil || ast.IsGenerated(file) || strings.HasSuffix(name, "_test.go") {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(rel))
		m.use(file, module)
		if leaf(folder) || folder == fleetTests {
			return nil
		}
		for _, d := range file.Decls {
			m.declare(folder, d, file.Name.Name != "main" && !strings.Contains(folder, "internal") && room(folder) != "examples")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// use notes what a file takes of other packages of the module.
func (m *measured) use(file *ast.File, module string) {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		ours, ok := strings.CutPrefix(imported, module)
		if !ok {
			continue
		}
		name := path.Base(ours)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = ours
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := selector.X.(*ast.Ident); ok && imports[of.Name] != "" {
				m.used[imports[of.Name]+"."+selector.Sel.Name] = true
			}
		}
		return true
	})
}

func (m *measured) declare(folder string, d ast.Decl, public bool) {
	name := func(id *ast.Ident) {
		if public && id.IsExported() {
			m.exported[folder+"."+id.Name] = folder
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			public = public && !strings.Contains(d.Doc.Text(), "Deprecated:")
			name(d.Name)
			return
		}
		receiver := d.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if id, ok := receiver.(*ast.Ident); ok {
			m.methods[folder+"."+id.Name]++
		}
	case *ast.GenDecl:
		public = public && !strings.Contains(d.Doc.Text(), "Deprecated:")
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				name(spec.Name)
				if s, ok := spec.Type.(*ast.StructType); ok {
					m.fields[folder+"."+spec.Name.Name] = s.Fields.NumFields()
				}
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					name(id)
				}
			}
		}
	}
}

// largest are the names with the greatest counts.
func largest(counts map[string]int) []string {
	names := slices.Collect(maps.Keys(counts))
	slices.SortFunc(names, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	return names[:min(len(names), 8)]
}

// Nothing grows past what was reached.
func TestSizes(t *testing.T) {
	m := measure(t)
	for what, one := range map[string]struct {
		counts map[string]int
		most   int
	}{"methods": {m.methods, mostMethods}, "fields": {m.fields, mostFields}} {
		for i, name := range largest(one.counts) {
			t.Logf("%3d %s: %s", one.counts[name], what, name)
			if i == 0 && one.counts[name] > one.most {
				t.Errorf("%s has %d %s, the most that any type has had is %d: give a part of it a type of its own", name, one.counts[name], what, one.most)
			}
		}
	}
	var unused []string
	for name := range m.exported {
		if !m.used[name] {
			unused = append(unused, name)
		}
	}
	slices.Sort(unused)
	t.Logf("%d exported identifiers without a user: %s", len(unused), strings.Join(unused, " "))
	if len(unused) > mostUnused {
		t.Errorf("%d exported identifiers have no user, there were %d: unexport what is new", len(unused), mostUnused)
	}
}

// What a tool's author or a client takes on stays small.
func TestPulls(t *testing.T) {
	for name, most := range map[string]int{"client": clientPulls, "plugin": pluginPulls} {
		list := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./"+name)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		pulls := strings.Fields(string(out))
		t.Logf("%s pulls %d packages", name, len(pulls))
		if len(pulls) > most {
			t.Errorf("%s pulls %d packages, it was %d: %q", name, len(pulls), most, pulls)
		}
	}
}
