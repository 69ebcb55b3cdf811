package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const npmProject = "../../../examples/mcp"

// npmServers is a folder with the reference servers of examples/mcp installed,
// kept in the user's cache for the next time.
var npmServers = sync.OnceValues(func() (string, error) {
	lock, err := os.ReadFile(filepath.Join(npmProject, "package-lock.json"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "toolhost-test", "mcp-servers-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "fresh-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := install(fresh); err != nil {
		return "", err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, missing := os.Stat(dir); missing != nil { // else somebody else was faster
			return "", err
		}
	}
	return dir, nil
})

func install(dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join(npmProject, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir, npm.Stdout, npm.Stderr = dir, os.Stderr, os.Stderr
	return npm.Run()
}

// npmServer is the argument vector of a reference server, and the folder that a
// call must be granted to read it.
func npmServer(t testing.TB, name string, args ...string) (argv []string, folder string) {
	t.Helper()
	dir, err := npmServers()
	if err != nil {
		t.Fatalf("cannot install the servers of %s (node and npm are needed, and the registry): %v", npmProject, err)
	}
	main := filepath.Join(dir, "node_modules/@modelcontextprotocol", "server-"+name, "dist/index.js")
	return append([]string{"node", main}, args...), dir
}
