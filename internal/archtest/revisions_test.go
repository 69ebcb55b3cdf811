package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ofRevisions are the ways in which code depends on a revision of MCP.
var ofRevisions = regexp.MustCompile(`(?m)^[^/\n]*(?:"20\d\d-\d\d-\d\d"|\b(?:[mM]ultiRound|LastFormer|statelessSince|versionInitialize|batchVersion|audioSince|linkSince)\b)`)

// The files that the next revision of MCP would touch are named in the document: all that
// look at a revision, and none that is not there.
func TestRevisionsOfMCP(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(raw), "A next revision of the protocol would touch:\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := map[string]bool{}
	for row := range strings.Lines(table) {
		files, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		dir := ""
		for part := range strings.SplitSeq(files, "`") {
			switch {
			case strings.Contains(part, "/"):
				dir = filepath.Dir(part)
			case strings.HasSuffix(part, ".go"):
				part = filepath.Join(dir, part)
			default:
				continue
			}
			named[part] = true
			if _, err := os.Stat(filepath.Join(root, part)); err != nil {
				t.Errorf("the document names %s: %v", part, err)
			}
		}
	}
	for _, dir := range []string{"internal/tools/adapter/mcp", "internal/serve/mcpserver", "internal/serve/mcpserver/internal/gateway", "internal/serve/mcpserver/internal/verbatim", "internal/tools/mcpcall", "internal/tools/pins", "internal/terminal", "turn"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if file := filepath.Join(dir, filepath.Base(path)); ofRevisions.Match(text) && !named[file] {
				t.Errorf("%s looks at a revision of MCP, and docs/architecture.md does not name it", file)
			}
		}
	}
}
