// Package npm installs what a project's lock file names, for tests.
package npm

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Folder is one with what the project's package-lock.json names, in the user's cache
// for the next time.
func Folder(t testing.TB, project string) string {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(project, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "toolhost-test", "npm-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "fresh-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	install(t, project, fresh)
	if err := os.Chmod(fresh, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, missing := os.Stat(dir); missing != nil { // else somebody else was faster
			t.Fatal(err)
		}
	}
	return dir
}

// Tarball is a package as its registry has it, in the user's cache for the next time.
func Tarball(t testing.TB, name, version string) []byte {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "toolhost-test")
	path := filepath.Join(dir, name+"-"+version+".tgz")
	if data, err := os.ReadFile(path); err == nil {
		return data
	}
	fresh := t.TempDir()
	cmd := exec.Command("npm", "pack", "--silent", "--pack-destination", fresh, name+"@"+version)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm pack: %v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(fresh, filepath.Base(path)))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(path+".fresh", data, 0o644)
	}
	if err == nil {
		err = os.Rename(path+".fresh", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func install(t testing.TB, project, dir string) {
	t.Helper()
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join(project, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("cannot install what %s names (node and npm are needed, and the registry): %v\n%s", project, err, out)
	}
}
