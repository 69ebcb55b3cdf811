package export

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The test binary plays the process without root's rights.
const (
	roleVar  = "EXPORT_TEST_ROLE"
	listRole = "list"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) == listRole {
		if err := playList(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	syscall.Umask(0o022)
	goleak.VerifyTestMain(m)
}

// tree is a workspace: a path that ends in a slash is a folder, others are
// files with this content.
type tree map[string]string

// workspace makes a tree and opens it as the sandbox does.
func workspace(t testing.TB, files tree) (dir string, opened *os.File) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		write(t, dir+"/"+name, content)
	}
	return dir, openPath(t, dir)
}

func openPath(t testing.TB, dir string) *os.File {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), dir)
	t.Cleanup(func() { file.Close() })
	return file
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	if !strings.HasSuffix(path, "/") {
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantListing compares lines of path, size and reason.
func wantListing(t testing.TB, l Listing, want ...string) {
	t.Helper()
	var got []string
	for _, f := range l.Files {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %d %s", f.Path, f.Bytes, f.Skipped)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// wantTree wants just these files in dir.
func wantTree(t testing.TB, dir string, want tree) {
	t.Helper()
	got := tree{}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			t.Errorf("%s is %v", path, entry.Type())
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		got[rel] = string(raw)
		return err
	}))
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%q has %.40q, want %.40q", name, got[name], content)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%q was copied", name)
	}
}

func wantError(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}

// copyTo is Copy into a folder by its path.
func copyTo(ctx context.Context, workspace *os.File, to string, l Limits) (Listing, error) {
	root, err := Open(to)
	if err != nil {
		return Listing{}, err
	}
	defer root.Close()
	return Copy(ctx, workspace, root, l)
}
