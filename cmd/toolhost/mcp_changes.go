package main

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/toolhost/toolhost/internal/cli/mcpclients"
	"github.com/toolhost/toolhost/internal/terminal"
)

// changes are the lines by which an entry of a file changes. Of the others, which may hold
// secrets, none is shown.
func changes(client mcpclients.Client, name, path string, before, after []byte) string {
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %[1]s\n@@ %s @@\n", path, terminal.OneLine(name))
	header := 4
	for line := range strings.Lines(string(diff.Diff(path, client.Shown(before, name), path, client.Shown(after, name)))) {
		if header--; header < 0 && (line[0] == '-' || line[0] == '+') {
			out.WriteString(line[:1] + terminal.OneLine(strings.TrimRight(line[1:], "\n")) + "\n")
		}
	}
	return out.String()
}
