package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// numbers are the system calls of one architecture by their kernel name.
type numbers map[string]uint32

// findNumbers reads the tables of every Linux architecture, by GOARCH, from the source of golang.org/x/sys/unix: that
// package compiles for one architecture at a time, but its files for the others lie beside it.
func findNumbers() (map[string]numbers, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find golang.org/x/sys: %w", err)
	}
	const prefix, suffix = "zsysnum_linux_", ".go"
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), prefix+"*"+suffix))
	if err != nil {
		return nil, err
	}
	tables := map[string]numbers{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		arch := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), prefix), suffix)
		if tables[arch], err = parseNumbers(source); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
	}
	return tables, nil
}

// parseNumbers reads constants of the form SYS_NAME = number.
func parseNumbers(source []byte) (numbers, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	table := numbers{}
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if err := table.add(spec); err != nil {
				return nil, err
			}
		}
	}
	return table, nil
}

// add takes up one constant; anything that is not of the expected form is an error, so that no call gets lost.
func (n numbers) add(spec ast.Spec) error {
	constant, ok := spec.(*ast.ValueSpec)
	if !ok || len(constant.Names) != 1 || len(constant.Values) != 1 {
		return fmt.Errorf("unexpected declaration %T", spec)
	}
	name, ok := strings.CutPrefix(constant.Names[0].Name, "SYS_")
	literal, isLiteral := constant.Values[0].(*ast.BasicLit)
	if !ok || !isLiteral {
		return fmt.Errorf("unexpected constant %s", constant.Names[0].Name)
	}
	nr, err := strconv.ParseUint(literal.Value, 0, 32)
	if err != nil {
		return err
	}
	n[strings.ToLower(name)] = uint32(nr)
	return nil
}
