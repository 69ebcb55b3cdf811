package pack

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// tree makes a folder of files; those named *.sh are executable.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var sample = map[string]string{"tool.sh": "#!/bin/sh\n", "data/words": "a b c", "data/deep/x": ""}

func described() []*pluginv1.ToolDescription {
	return []*pluginv1.ToolDescription{
		{Name: "a", InputSchema: []byte(`{"type":"object"}`), Wish: &pluginv1.SandboxWish{Read: []string{"~/x"}, MemoryBytes: 5}},
		{Name: "b", InputSchema: []byte(`{"type":"object"}`), Wish: &pluginv1.SandboxWish{Read: []string{"~/x", "/y"}, Network: true, MemoryBytes: 3}},
	}
}

func mustCollect(t *testing.T, s Spec) *Contents {
	t.Helper()
	c, err := Collect(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tarOf(t *testing.T, c *Contents) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Tar(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func save(t *testing.T, raw []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.tar")
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// privately lets Open work in a folder of the test's own and checks that
// nothing is left there.
func privately(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

func TestRoundTrip(t *testing.T) {
	privately(t)
	c := mustCollect(t, Spec{Source: tree(t, sample), Version: "1.2", Tools: described()})
	dir := filepath.Join(t.TempDir(), "packed")
	if err := c.Dir(dir); err != nil {
		t.Fatal(err)
	}
	var hashes []string
	for _, path := range []string{save(t, tarOf(t, c)), dir} {
		o, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		checkOpened(t, o)
		hashes = append(hashes, o.ManifestSHA256)
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	if hashes[0] != hashes[1] || len(hashes[0]) != 64 {
		t.Errorf("manifests %q", hashes)
	}
}

func checkOpened(t *testing.T, o *Opened) {
	t.Helper()
	m := o.Manifest
	if m.Name != "tool.sh" || m.Version != "1.2" || m.Platform != "linux" || m.Binary != "tool.sh" || len(m.Tools) != 2 {
		t.Errorf("manifest %+v", m)
	}
	if !slices.Equal(m.Wish.Read, []string{"~/x", "/y"}) || !m.Wish.Network || m.Wish.MemoryBytes != 5 {
		t.Errorf("wish %+v", m.Wish)
	}
	for name, want := range sample {
		path := filepath.Join(o.Dir, name)
		got, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(got) != want {
			t.Fatalf("%s: %q, %v", name, got, errors.Join(err, statErr))
		}
		if executable := info.Mode()&0o111 != 0; executable != strings.HasSuffix(name, ".sh") {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	if info, err := os.Stat(o.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the copy's folder: %v, %v", info.Mode(), err)
	}
	if o.Binary != filepath.Join(o.Dir, "tool.sh") || o.SHA256 != hash([]byte(sample["tool.sh"])) {
		t.Errorf("binary %s, %s", o.Binary, o.SHA256)
	}
}

func TestATarIsReproducible(t *testing.T) {
	spec := func() Spec { return Spec{Source: tree(t, sample), Tools: described()} }
	if !bytes.Equal(tarOf(t, mustCollect(t, spec())), tarOf(t, mustCollect(t, spec()))) {
		t.Error("the same files gave other bytes")
	}
}

func TestOneBinary(t *testing.T) {
	privately(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := mustCollect(t, Spec{Source: self, Name: "me"})
	if got, want := c.Manifest.Platform, runtime.GOOS+"/"+runtime.GOARCH; got != want {
		t.Errorf("platform %s, want %s", got, want)
	}
	o, err := Open(save(t, tarOf(t, c)))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.Manifest.Name != "me" || filepath.Base(o.Binary) != filepath.Base(self) || len(o.Manifest.Files) != 1 {
		t.Errorf("opened %+v", o)
	}
}

func TestIs(t *testing.T) {
	c := mustCollect(t, Spec{Source: tree(t, sample)})
	packed := save(t, tarOf(t, c))
	if !Is(packed) {
		t.Error("a tar is none")
	}
	if err := os.Chmod(packed, 0o755); err != nil {
		t.Fatal(err)
	}
	if !Is(packed) {
		t.Error("a tar that is executable is none")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{self, tree(t, sample), filepath.Join(tree(t, sample), "tool.sh"), save(t, nil), "/nonexistent", "/dev/null"} {
		if Is(path) {
			t.Errorf("%s is a pack", path)
		}
	}
	if !Is(tree(t, map[string]string{manifestName: ""})) {
		t.Error("a folder with a manifest is none")
	}
}

func TestCannotPack(t *testing.T) {
	linked := tree(t, sample)
	if err := os.Symlink("/etc/passwd", filepath.Join(linked, "link")); err != nil {
		t.Fatal(err)
	}
	fifo := tree(t, sample)
	if err := syscall.Mkfifo(filepath.Join(fifo, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, spec := range map[string]Spec{
		"no such file":  {Source: "/nonexistent"},
		"0 executables": {Source: tree(t, map[string]string{"a": ""})},
		"2 executables (a.sh, b.sh), name the plugin's with --binary": {Source: tree(t, map[string]string{"a.sh": "", "b.sh": ""})},
		`"link" is not a plain file`:                                  {Source: linked},
		`"fifo" is not a plain file`:                                  {Source: fifo},
		`binary "data/words" is not among`:                            {Source: tree(t, sample), Binary: "data/words"},
		`path "../x"`:                                                 {Source: tree(t, sample), Binary: "../x"},
		`name "two words"`:                                            {Source: tree(t, sample), Name: "two words"},
		"version":                                                     {Source: tree(t, sample), Version: "1\n"},
		"a manifest.json of its own":                                  {Source: tree(t, map[string]string{"a.sh": "", manifestName: ""})},
		`path "back\\slash"`:                                          {Source: tree(t, map[string]string{"a.sh": "", `back\slash`: ""})},
		"name a binary in it only of a f":                             {Source: filepath.Join(tree(t, sample), "tool.sh"), Binary: "x"},
	} {
		if _, err := Collect(spec); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v; want %q", spec, err, want)
		}
	}
}

func TestWhatChangesWhileItIsPackedIsNoticed(t *testing.T) {
	source := tree(t, sample)
	c := mustCollect(t, Spec{Source: source})
	if err := os.WriteFile(filepath.Join(source, "data/words"), []byte("a b d"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.Tar(io.Discard); err == nil || !strings.Contains(err.Error(), "data/words was changed") {
		t.Errorf("tar: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "p")
	if err := c.Dir(dir); err == nil || !strings.Contains(err.Error(), "data/words was changed") {
		t.Errorf("folder: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
	if err := c.Dir(source); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("over an existing folder: %v", err)
	}
}

// Where copies cannot be made, the variable that says where is named.
func TestNoPlaceForCopies(t *testing.T) {
	path := save(t, tarOf(t, mustCollect(t, Spec{Source: tree(t, map[string]string{"a.sh": "#!"}), Binary: "a.sh"})))
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nosuch"))
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "set TMPDIR to a folder that you may write to") {
		t.Error(err)
	}
}
