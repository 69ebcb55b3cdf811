package mcp

import (
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/npm"
)

const npmProject = "../../../../examples/mcp"

// npmServer is the argument vector of a reference server, and the folder that a
// call must be granted to read it.
func npmServer(t testing.TB, name string, args ...string) (argv []string, folder string) {
	t.Helper()
	dir := npm.Folder(t, npmProject)
	main := filepath.Join(dir, "node_modules/@modelcontextprotocol", "server-"+name, "dist/index.js")
	return append([]string{"node", main}, args...), dir
}
