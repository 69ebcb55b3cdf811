package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxIgnoreBytes is how much of a .gitignore is read.
const maxIgnoreBytes = 1 << 20

// rules are those of one folder's .gitignore, and of the folders above it. nil
// has none. It is never changed once made.
type rules struct {
	above *rules
	dir   string // slash path from the top; . is the top
	list  []rule
}

// rule is one line of a .gitignore, see gitignore(5).
type rule struct {
	pattern  string
	negated  bool // it takes a path back in
	dirOnly  bool
	nameOnly bool // it matches names at any depth, not paths
}

// exclude says whether a path (with slashes, from the top) is left out: the
// last matching rule of the nearest folder decides. What lies in an excluded
// folder must not be asked for: nothing takes it back in.
func (r *rules) exclude(name string, isDir bool) bool {
	for ; r != nil; r = r.above {
		for _, rule := range slices.Backward(r.list) {
			if rule.match(r.relative(name), isDir) {
				return !rule.negated
			}
		}
	}
	return false
}

func (r *rules) relative(name string) string {
	if r.dir == "." {
		return name
	}
	return strings.TrimPrefix(name, r.dir+"/")
}

func (r rule) match(name string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.nameOnly {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(r.pattern, name)
}

// in adds the rules of the folder at dir, whose slash path from the top is
// name. With an error the rules above still hold.
func (r *rules) in(dir, name string) (*rules, error) {
	text, err := readIgnoreFile(filepath.Join(dir, ".gitignore"))
	if err != nil || text == "" {
		return r, err
	}
	return &rules{above: r, dir: name, list: parseRules(text)}, nil
}

// readIgnoreFile takes a missing file as an empty one, and like git anything
// but a regular file.
func readIgnoreFile(name string) (string, error) {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreBytes))
	return string(text), err
}

func parseRules(text string) []rule {
	var list []rule
	for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if r, ok := parseRule(line); ok {
			list = append(list, r)
		}
	}
	return list
}

// parseRule is false for a comment, a blank line and what can match nothing.
func parseRule(line string) (r rule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = trimSpaces(line)
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.dirOnly = strings.CutSuffix(line, "/")
	r.nameOnly = !strings.Contains(line, "/")
	r.pattern = translate(strings.TrimPrefix(line, "/"), r.nameOnly)
	return r, r.pattern != "" && doublestar.ValidatePattern(r.pattern)
}

// trimSpaces keeps a space that is escaped.
func trimSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	if len(trimmed) < len(line) && strings.HasSuffix(trimmed, `\`) {
		return trimmed + " "
	}
	return trimmed
}

// toDoublestar are the differences in notation: braces are nothing special to
// git, and doublestar has no named classes. An escaped character stays as it is.
var toDoublestar = strings.NewReplacer(
	`\\`, `\\`, `\{`, `\{`, `\}`, `\}`, `{`, `\{`, `}`, `\}`,
	"[:alpha:]", "A-Za-z", "[:digit:]", "0-9", "[:alnum:]", "A-Za-z0-9",
	"[:upper:]", "A-Z", "[:lower:]", "a-z", "[:xdigit:]", "0-9A-Fa-f", "[:space:]", " \t\r\n\v\f",
)

// translate writes a pattern of git's as one of doublestar's. ** means
// something only as a whole part of a path; a/** does not match a itself.
func translate(pattern string, nameOnly bool) string {
	parts := strings.Split(toDoublestar.Replace(pattern), "/")
	for i, part := range parts {
		if part == "**" && !nameOnly {
			continue
		}
		for strings.Contains(part, "**") {
			part = strings.ReplaceAll(part, "**", "*")
		}
		parts[i] = part
	}
	if last := len(parts) - 1; last > 0 && parts[last] == "**" {
		parts = append(parts, "*")
	}
	return strings.Join(parts, "/")
}
