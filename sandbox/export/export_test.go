package export

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestCopy(t *testing.T) {
	files := tree{"a.txt": "alpha", "empty": "", "sub/b": "beta", "sub/sub/c": strings.Repeat("c", 3*chunkBytes), "none/": ""}
	_, w := workspace(t, files)
	to := filepath.Join(t.TempDir(), "new", "out")
	l, err := copyTo(t.Context(), w, to, Limits{})
	must(t, err)
	wantListing(t, l, "a.txt 5", "empty 0", "sub/b 4", "sub/sub/c 786432")
	if l.Bytes != 786441 || l.Truncated {
		t.Errorf("%+v", l)
	}
	delete(files, "none/")
	wantTree(t, to, files)
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	listed, err := List(t.Context(), w, Limits{})
	if err != nil || !slices.Equal(listed.Files, l.Files) || listed.Bytes != l.Bytes {
		t.Errorf("List gives %+v, %v; Copy %+v", listed, err, l)
	}
}

// A descriptor that is open for reading is neither moved nor used up.
func TestReadableDescriptor(t *testing.T) {
	dir, _ := workspace(t, tree{"a": "1"})
	file, err := os.Open(dir)
	must(t, err)
	defer file.Close()
	for range 2 {
		l, err := List(t.Context(), file, Limits{})
		must(t, err)
		wantListing(t, l, "a 1")
	}
	if names, err := file.Readdirnames(-1); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestModes(t *testing.T) {
	dir, w := workspace(t, nil)
	for name, mode := range map[string]uint32{
		"plain": 0o600, "program": 0o700, "all": 0o777, "group": 0o654, "setuid": 0o4755, "setgid": 0o2755, "sticky": 0o1666,
	} {
		write(t, filepath.Join(dir, name), name)
		must(t, syscall.Chmod(filepath.Join(dir, name), mode))
	}
	to := t.TempDir()
	l, err := copyTo(t.Context(), w, to, Limits{})
	must(t, err)
	for _, f := range l.Files {
		want := fs.FileMode(0o644)
		switch f.Path {
		case "program", "all", "setuid", "setgid":
			want = 0o744
		}
		if info, err := os.Lstat(filepath.Join(to, f.Path)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", f.Path, info.Mode(), err, want)
		}
		original, err := os.Lstat(filepath.Join(dir, f.Path))
		if err != nil || original.Mode() != f.Mode {
			t.Errorf("%s: %v is listed as %v", f.Path, original.Mode(), f.Mode)
		}
	}
	if len(l.Files) != 7 {
		t.Errorf("%+v", l)
	}
}

// What exists stays as it is, and keeps no other file from being copied.
func TestNothingIsOverwritten(t *testing.T) {
	_, w := workspace(t, tree{"a": "new", "b/c": "new"})
	const exists = "something of its name exists there already: remove it, or choose another folder"
	for name, test := range map[string]struct {
		before, after tree
		path, skipped string
	}{
		"file":           {tree{"b/c": "old"}, tree{"a": "new", "b/c": "old"}, "b/c", exists},
		"folder":         {tree{"a/x": "old"}, tree{"a/x": "old", "b/c": "new"}, "a", exists},
		"file as folder": {tree{"b": "old"}, tree{"a": "new", "b": "old"}, "b/c", exists},
	} {
		t.Run(name, func(t *testing.T) {
			to, _ := workspace(t, test.before)
			l, err := copyTo(t.Context(), w, to, Limits{})
			must(t, err)
			for _, f := range l.Files {
				if f.Path == test.path && f.Skipped != test.skipped || f.Path != test.path && f.Skipped != "" {
					t.Errorf("%s: %q", f.Path, f.Skipped)
				}
			}
			if len(l.Files) != 2 {
				t.Errorf("%+v", l)
			}
			wantTree(t, to, test.after)
		})
	}
}

// Links in the destination do not lead out of it.
func TestDestinationWithLinks(t *testing.T) {
	_, w := workspace(t, tree{"a": "new", "b/c": "new"})
	outside := t.TempDir()
	for _, name := range []string{"a", "b"} {
		to := t.TempDir()
		must(t, os.Symlink(outside, filepath.Join(to, name)))
		l, err := copyTo(t.Context(), w, to, Limits{})
		if err == nil && !slices.ContainsFunc(l.Files, func(f File) bool { return strings.HasPrefix(f.Path, name) && f.Skipped != "" }) {
			t.Errorf("%s: %+v", name, l)
		}
	}
	wantTree(t, outside, tree{})
}

func TestOtherFilesOfTheDestinationStay(t *testing.T) {
	_, w := workspace(t, tree{"sub/a": "new"})
	to, _ := workspace(t, tree{"sub/other": "old", "z": "old"})
	_, err := copyTo(t.Context(), w, to, Limits{})
	must(t, err)
	wantTree(t, to, tree{"sub/a": "new", "sub/other": "old", "z": "old"})
}

func TestLimits(t *testing.T) {
	_, w := workspace(t, tree{"a": "12345", "b": "123456", "c": "1234", "d/e": "12", "d/f/g": "1", "d/f/h/i": ""})
	for _, test := range []struct {
		name  string
		l     Limits
		want  []string
		bytes int64
	}{
		{"file", Limits{FileBytes: 5, Depth: 2}, []string{
			"a 5", "b 6 too large: more than 5 bytes", "c 4", "d/e 2", "d/f/g 1", "d/f/h 0 deeper than 2 folders",
		}, 12},
		{"all", Limits{Bytes: 10}, []string{
			"a 5", "b 6 more than 10 bytes in all", "c 4", "d/e 2 more than 10 bytes in all", "d/f/g 1", "d/f/h/i 0",
		}, 10},
		{"depth", Limits{Depth: 1}, []string{"a 5", "b 6", "c 4", "d/e 2", "d/f 0 deeper than 1 folders"}, 17},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := copyTo(t.Context(), w, t.TempDir(), test.l)
			must(t, err)
			wantListing(t, l, test.want...)
			if l.Bytes != test.bytes || l.Truncated {
				t.Errorf("%d bytes, truncated %v", l.Bytes, l.Truncated)
			}
		})
	}
	for _, l := range []Limits{{Files: -1}, {Bytes: -1}, {FileBytes: -1}, {Depth: -1}} {
		_, err := List(t.Context(), w, l)
		wantError(t, err, "a limit is negative")
	}
}

func TestFilesLimit(t *testing.T) {
	_, w := workspace(t, tree{"a": "", "b": "", "c/d": "", "c/e": ""})
	for files := range 7 {
		l, err := List(t.Context(), w, Limits{Files: files + 1})
		must(t, err)
		if want := files+1 < 5; l.Truncated != want || len(l.Files) > files+1 {
			t.Errorf("limit %d: %+v", files+1, l)
		}
	}
}

func TestContextEnds(t *testing.T) {
	_, w := workspace(t, tree{"a": "1"})
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the call is over")
	cancel(over)
	_, err := List(ctx, w, Limits{})
	if !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
}

// A file that is being copied when the context ends is not left half-written.
func TestContextEndsWithinFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	to := t.TempDir()
	root, err := Open(to)
	must(t, err)
	defer root.Close()
	d := &destination{root: root, chunk: make([]byte, chunkBytes)}
	source := readerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	skipped, err := d.take(ctx, source, File{Path: "sub/a", Bytes: 1 << 30})
	if !errors.Is(err, context.Canceled) || skipped != "" {
		t.Errorf("%q, %v", skipped, err)
	}
	wantTree(t, to, tree{})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestFileThatFailsMidway(t *testing.T) {
	to := t.TempDir()
	root, err := Open(to)
	must(t, err)
	defer root.Close()
	d := &destination{root: root, chunk: make([]byte, chunkBytes)}
	for _, test := range []struct {
		name   string
		source readerFunc
		want   string
	}{
		{"grows", func(p []byte) (int, error) { return len(p), nil }, "changed meanwhile"},
		{"unreadable", func([]byte) (int, error) { return 0, &fs.PathError{Err: syscall.EIO} }, "unreadable: input/output error"},
		{"shrinks", strings.NewReader("short").Read, "changed meanwhile"},
	} {
		if skipped, err := d.take(t.Context(), test.source, File{Path: "a", Bytes: 100}); skipped != test.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", test.name, skipped, err, test.want)
		}
	}
	wantTree(t, to, tree{})
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, &fs.PathError{Err: syscall.ENOSPC} }

// A file that there is no room for is skipped: others may fit.
func TestAFileThatDoesNotFit(t *testing.T) {
	d := &destination{chunk: make([]byte, chunkBytes)}
	if skipped, err := d.fill(t.Context(), fullDisk{}, strings.NewReader("x"), File{Path: "a", Bytes: 1}); skipped != "no room for it there: no space left on device" || err != nil {
		t.Errorf("%q, %v", skipped, err)
	}
}

func TestBadWorkspace(t *testing.T) {
	dir, _ := workspace(t, tree{"a": ""})
	_, err := List(t.Context(), openPath(t, filepath.Join(dir, "a")), Limits{})
	wantError(t, err, "cannot open the workspace: not a directory")
	_, w := workspace(t, nil)
	_, err = copyTo(t.Context(), w, filepath.Join(dir, "a"), Limits{})
	wantError(t, err, "cannot make the folder")
}

// Root fills no folder that somebody else chooses by a link.
func TestFolderBehindAnothersLink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("missing: root rights (whose folders others can write to)")
	}
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/target", 0o700))
	must(t, os.Mkdir(dir+"/open", 0o700))
	must(t, os.Chmod(dir+"/open", 0o777|os.ModeSticky))
	must(t, os.Symlink(dir+"/target", dir+"/open/link"))
	for _, to := range []string{dir + "/open/link", dir + "/open/link/below/it"} {
		if _, err := Open(to); err == nil || !strings.Contains(err.Error(), "is a link to "+dir+"/target") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if left, err := os.ReadDir(dir + "/target"); err != nil || len(left) > 0 {
		t.Errorf("%d files there, %v", len(left), err)
	}
}
