package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(dir string) error // dir exists, with mode 0700
		root  bool
		want  string
	}{
		{"symlink", func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir))
		}, false, "is a symbolic link"},
		{"dangling symlink", func(dir string) error {
			return errors.Join(os.Remove(dir), os.Symlink("nowhere", dir))
		}, false, "is a symbolic link"},
		{"file", func(dir string) error {
			return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600))
		}, false, "not a directory"},
		{"group can write", func(dir string) error { return os.Chmod(dir, 0o770) }, false, "run chmod 700"},
		{"others can write", func(dir string) error { return os.Chmod(dir, 0o702|os.ModeSticky) }, false, "run chmod 700"},
		{"parent", func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, false, "could be replaced by others"},
		{"identities", func(dir string) error { return os.Symlink("/tmp", filepath.Join(dir, identities)) }, false, "is a symbolic link"},
		{"another's", func(dir string) error { return os.Chown(dir, 1, 1) }, true, "belongs to uid 1, not to us"},
		{"another's parent", func(dir string) error { return os.Chown(filepath.Dir(dir), 1, 1) }, true, "belongs to uid 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.root && os.Geteuid() != 0 {
				t.Skip("missing: root rights (to give a folder away)")
			}
			dir := filepath.Join(t.TempDir(), "store")
			if err := errors.Join(os.Mkdir(dir, 0o700), test.spoil(dir)); err != nil {
				t.Fatal(err)
			}
			_, err := Open(dir, 0)
			wantError(t, err, test.want)
			wantError(t, err, dir)
		})
	}
	_, err := Open(t.TempDir(), -1)
	wantError(t, err, "give a positive bound")
}

func TestOpenAccepts(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"sticky parent":  func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777|os.ModeSticky) },
		"readable":       func(dir string) error { return os.Mkdir(dir, 0o755) },
		"linked parents": func(dir string) error { return linkParent(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parent", "store")
			if err := errors.Join(os.Mkdir(filepath.Dir(dir), 0o700), prepare(dir)); err != nil {
				t.Fatal(err)
			}
			open(t, dir, 0).add(t, writeTool(t, "tool"), "tool")
		})
	}
}

func linkParent(dir string) error {
	parent := filepath.Dir(dir)
	return errors.Join(os.Rename(parent, parent+"2"), os.Symlink(parent+"2", parent))
}

func TestOpenSweeps(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, 0)
	for name, age := range map[string]time.Duration{"tmp-1-old": tempAge + time.Minute, "tmp-2-young": tempAge - time.Minute} {
		path := filepath.Join(dir, name)
		overwrite(t, path, "x")
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir, 0)
	_, old := os.Lstat(filepath.Join(dir, "tmp-1-old"))
	_, young := os.Lstat(filepath.Join(dir, "tmp-2-young"))
	if !errors.Is(old, os.ErrNotExist) || young != nil {
		t.Errorf("old: %v; young: %v", old, young)
	}
}

func TestFullDisk(t *testing.T) {
	cmd := command(t, "full", t.TempDir(), writeTool(t, strings.Repeat("x", 3<<20)), writeTool(t, "small"))
	mountNamespace(t, cmd)
	run(t, cmd)
}

// playFull adds a file to a store on a disk that is too small for it.
func playFull(args []string) error {
	dir, large, small := args[0], args[1], args[2]
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=700"); err != nil {
		return err
	}
	s, err := Open(dir, 0)
	if err != nil {
		return err
	}
	_, err = s.Add(large)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) {
		return fmt.Errorf("adding what does not fit: %w", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		return fmt.Errorf("left behind: %v, %w", entries, err)
	}
	_, err = s.Add(small)
	return err
}

func TestNoExec(t *testing.T) {
	cmd := command(t, "noexec", t.TempDir())
	mountNamespace(t, cmd)
	run(t, cmd)
}

func playNoExec(args []string) error {
	if err := syscall.Mount("tmpfs", args[0], "tmpfs", syscall.MS_NOEXEC, "mode=700"); err != nil {
		return err
	}
	if _, err := Open(args[0], 0); err == nil || !strings.Contains(err.Error(), "mounted noexec") {
		return fmt.Errorf("opened a store without exec: %w", err)
	}
	return nil
}
