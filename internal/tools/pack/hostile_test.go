package pack

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// entry is one member of a hostile tar.
type entry struct {
	name, content string
	kind          byte
	link          string
	pax           map[string]string
}

func tarBytes(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Linkname: e.link, Size: int64(len(e.content)), Mode: 0o644, PAXRecords: e.pax}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// manifestOf is that of one executable file `x` with this content.
func manifestOf(content string, change func(*Manifest)) entry {
	m := Manifest{
		SchemaVersion: 1, Name: "x", Platform: "linux", Binary: "x",
		Files: []File{{Path: "x", Bytes: int64(len(content)), SHA256: hash([]byte(content)), Executable: true}},
	}
	if change != nil {
		change(&m)
	}
	raw, _ := json.Marshal(m)
	return entry{name: manifestName, content: string(raw)}
}

func TestHostilePacks(t *testing.T) {
	privately(t)
	x := entry{name: "x", content: "tool"}
	good := manifestOf("tool", nil)
	bad := func(change func(*Manifest)) []byte { return tarBytes(t, manifestOf("tool", change), x) }
	whole := tarBytes(t, good, x)
	for want, raw := range map[string][]byte{
		"no manifest.json":                       tarBytes(t, x),
		"not a whole tar":                        []byte("garbage that is not a tar"),
		"not a whole tar: unexpected":            whole[:1100],
		"is not a manifest":                      tarBytes(t, entry{name: manifestName, content: "{"}, x),
		"schemaVersion 2":                        bad(func(m *Manifest) { m.SchemaVersion = 2 }),
		`"x" is missing`:                         tarBytes(t, good),
		`"x" was changed`:                        tarBytes(t, good, entry{name: "x", content: "toll"}),
		`"y" is not in the manifest`:             tarBytes(t, good, x, entry{name: "y"}),
		`"x" twice`:                              tarBytes(t, good, x, x),
		`"manifest.json" twice`:                  tarBytes(t, good, good, x),
		`path "../x"`:                            tarBytes(t, good, entry{name: "../x"}),
		`path "/x"`:                              tarBytes(t, good, entry{name: "/x"}),
		`path "a/../../x"`:                       tarBytes(t, good, entry{name: "a/../../x"}),
		`path "a//x"`:                            tarBytes(t, good, entry{name: "a//x"}),
		`path "a\nb"`:                            tarBytes(t, good, entry{name: "a\nb"}),
		`"l" is not a plain file`:                tarBytes(t, good, entry{name: "l", kind: tar.TypeSymlink, link: "/etc/passwd"}),
		`"h" is not a plain file`:                tarBytes(t, good, x, entry{name: "h", kind: tar.TypeLink, link: "x"}),
		`"f" is not a plain file`:                tarBytes(t, good, entry{name: "f", kind: tar.TypeFifo}),
		`"d" is not a plain file`:                tarBytes(t, good, entry{name: "d", kind: tar.TypeChar}),
		`cannot place "x/y"`:                     tarBytes(t, good, x, entry{name: "x/y"}),
		`it is for "plan9/mips"`:                 bad(func(m *Manifest) { m.Platform = "plan9/mips" }),
		`it is for ""`:                           bad(func(m *Manifest) { m.Platform = "" }),
		`name ""`:                                bad(func(m *Manifest) { m.Name = "" }),
		"lists 0 files":                          bad(func(m *Manifest) { m.Files = nil }),
		"listed twice":                           bad(func(m *Manifest) { m.Files = append(m.Files, m.Files[0]) }),
		`binary "y" is not among`:                bad(func(m *Manifest) { m.Binary = "y" }),
		`binary "x" is not among its executable`: bad(func(m *Manifest) { m.Files[0].Executable = false }),
		"want its sha256":                        bad(func(m *Manifest) { m.Files[0].SHA256 = strings.ToUpper(m.Files[0].SHA256) }),
		"more than 1073741824 bytes":             bad(func(m *Manifest) { m.Files[0].Bytes = MaxBytes + 1 }),
		"manifest.json has more than":            tarBytes(t, entry{name: manifestName, content: strings.Repeat(" ", MaxManifestBytes+1)}),
	} {
		o, err := Open(save(t, raw))
		if err == nil {
			o.Close()
			t.Errorf("%s: opened", want)
		} else if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "cannot open the pack /") {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// tar(1), given a folder, writes ./names and the folders themselves.
func TestATarOfTarIsAPackToo(t *testing.T) {
	privately(t)
	m := manifestOf("tool", func(m *Manifest) { m.Binary, m.Files[0].Path = "a/x", "a/x" })
	m.name = "./" + m.name
	o, err := Open(save(t, tarBytes(t, entry{name: "./", kind: tar.TypeDir}, entry{name: "./a/", kind: tar.TypeDir}, entry{name: "./a/x", content: "tool"}, m)))
	if err != nil {
		t.Fatal(err)
	}
	o.Close()
}

func TestHostileFolders(t *testing.T) {
	privately(t)
	good := func() string {
		return tree(t, map[string]string{"x": "tool", manifestName: manifestOf("tool", nil).content})
	}
	link, fifo, none := good(), good(), tree(t, sample)
	if err := os.Symlink("x", filepath.Join(link, "y")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(fifo, "y"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		link: `"y" is not a plain file`, fifo: `"y" is not a plain file`, none: "no manifest.json",
		"/nonexistent": "no such file", "/dev/null": "neither a folder nor a file",
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", path, err, want)
		}
	}
	o, err := Open(good())
	if err != nil {
		t.Fatal(err)
	}
	o.Close()
}

func TestACopyIsBounded(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	x := extraction{root: root, left: 10, found: map[string]copied{}}
	if err := x.take("a", strings.NewReader("12345")); err != nil {
		t.Fatal(err)
	}
	if err := x.take("b", strings.NewReader("123456")); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("11 of 10 bytes: %v", err)
	}
	for i := range MaxFiles {
		x.found[string(rune(i))] = copied{}
	}
	if err := x.take("c", strings.NewReader("")); err == nil || !strings.Contains(err.Error(), "more than 4096 files") {
		t.Errorf("4097 files: %v", err)
	}
}

func TestSparseFilesAreRefused(t *testing.T) {
	if !sparse(&tar.Header{PAXRecords: map[string]string{"GNU.sparse.name": "x"}}) || sparse(&tar.Header{PAXRecords: map[string]string{"mtime": "1"}}) {
		t.Error("not told apart")
	}
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add([]byte(manifestOf("tool", nil).content))
	f.Add([]byte(`{"schemaVersion":1,"files":[{"path":"../x"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := decodeManifest(raw)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if !filepath.IsLocal(file.Path) || file.Path == manifestName {
				t.Errorf("path %q", file.Path)
			}
		}
	})
}
