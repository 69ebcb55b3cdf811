package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alone fails if anything but the file is in its folder.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("there are %v (%v) beside %s", entries, err, path)
	}
}

func TestWriteReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"one", "the second", ""} {
		if err := Write(path, []byte(text), Options{}); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	alone(t, path)
}

func TestOfAnotherMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, nil, Options{Mode: 0o644, Unsynced: true}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A reader has the old file open, and a link is not followed.
func TestTheOldFileStays(t *testing.T) {
	dir := t.TempDir()
	old, path := filepath.Join(t.TempDir(), "old"), filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(old, []byte("old"), 0o600), os.Symlink(old, path)); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("new"), Options{}); err != nil {
		t.Fatal(err)
	}
	if content(t, old) != "old" || content(t, path) != "new" {
		t.Errorf("old %q, new %q", content(t, old), content(t, path))
	}
}

func TestFailureLeavesWhatWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, []byte("whole"), Options{}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Fill(path, Options{}, func(w io.Writer) error {
		_, err := io.WriteString(w, "ha")
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) || content(t, path) != "whole" {
		t.Errorf("%v, %q", err, content(t, path))
	}
	alone(t, path)
}

func TestNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, []byte("first"), Options{New: true}); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("second"), Options{New: true}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v, want that the file exists", err)
	}
	if content(t, path) != "first" {
		t.Errorf("got %q", content(t, path))
	}
	alone(t, path)
}

func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 23456); err != nil {
		t.Fatal(err)
	}
	like, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file")
	if err := Write(path, nil, Options{Like: like}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 12345 || s.Gid != 23456 {
		t.Errorf("owned by %d:%d", s.Uid, s.Gid)
	}
}
