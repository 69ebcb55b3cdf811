package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
)

// builtBelow is a folder for all tests, which withTools makes and removes.
var builtBelow string

// withTools are the tests.
type withTools struct{ *testing.M }

func (w withTools) Run() int {
	dir, err := os.MkdirTemp("", "toolhost-built-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	builtBelow = dir
	return w.M.Run()
}

// toolsFolder has the example tools, and toolsdk.
func toolsFolder(t *testing.T) string {
	t.Helper()
	bin, err := buildTools()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

var buildTools = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(builtBelow, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return "", err
	}
	err := binaries.Into(bin, "toolsdk", "checksum", "fetch", "search", "sqlite", "stubborn", "wordcount")
	return bin, errors.Join(err, buildDocumented(filepath.Join(bin, "greet")))
})

// buildDocumented builds the example of docs/tool-authors.md.
func buildDocumented(out string) error {
	doc, err := os.ReadFile("../../docs/tool-authors.md")
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(doc), "```go\n")
	code, _, found := strings.Cut(rest, "```")
	source := filepath.Join(builtBelow, "main.go")
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil || !found {
		return fmt.Errorf("no example in docs/tool-authors.md, or %w", err)
	}
	return binaries.Build(out, source)
}
