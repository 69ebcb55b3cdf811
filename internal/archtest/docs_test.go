package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fence   = regexp.MustCompile("(?s)\n```.*?\n```")
	noSlug  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The index has all documents, under the reader that they are for.
func TestDocsByReader(t *testing.T) {
	index := read(t, filepath.Join(root, "docs", "README.md"))
	for _, reader := range []string{"Users", "Operators", "Authors", "Integrators"} {
		if !strings.Contains(index, "\n## "+reader) {
			t.Errorf("docs/README.md has nothing for %s", reader)
		}
	}
	linked(t, index, "*")
	linked(t, read(t, filepath.Join(root, "docs", "decisions", "README.md")), "decisions/*")
}

// linked wants an index to link what is in its folder of docs.
func linked(t *testing.T, index, pattern string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if name == "README.md" || slices.Contains([]string{".png", ".svg"}, filepath.Ext(name)) {
			continue
		}
		if !strings.Contains(index, "]("+name+")") && !strings.Contains(index, "]("+name+"/)") {
			t.Errorf("the index of docs/%s does not link %s", pattern, name)
		}
	}
}

// Links within the project lead somewhere.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "docs", "decisions", "README.md")) {
		for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
			to, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			target := page
			if to != "" {
				target = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if anchor != "" && !hasHeading(read(t, target), anchor) {
				t.Errorf("%s: %s has no heading for #%s", page, target, anchor)
			}
		}
	}
}

// hasHeading says whether a page has the heading that an anchor is made of.
func hasHeading(page, anchor string) bool {
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		if strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}
