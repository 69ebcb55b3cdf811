package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// call runs the tool as a host would, with arguments and result as JSON.
func call(t *testing.T, ctx context.Context, path string, sent *transcript) (Summary, error) {
	t.Helper()
	arguments, err := json.Marshal(Arguments{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := newTool().Run(ctx, arguments, sent.output())
	var summary Summary
	if err == nil {
		err = json.Unmarshal(raw, &summary)
	}
	return summary, err
}

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestChecksum(t *testing.T) {
	root := tree(t, map[string]string{"a/b": "one", "a.txt": "two", "z": "", "a\\b\nc": "odd"})
	if err := os.Symlink(".", filepath.Join(root, "loop")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	var sent transcript
	summary, err := call(t, t.Context(), root, &sent)
	if err != nil {
		t.Fatal(err)
	}
	lines := sumOf("two") + "  a.txt\n" + sumOf("one") + "  a/b\n" + `\` + sumOf("odd") + `  a\\b\nc` + "\n" + sumOf("") + "  z\n"
	if got := sent.text.String(); got != lines {
		t.Errorf("got %q, want %q", got, lines)
	}
	if want := (Summary{Files: 4, Bytes: 9, Skipped: 2, TreeSHA256: sumOf(lines)}); summary != want {
		t.Errorf("summary %+v, want %+v", summary, want)
	}
	check(t, root, lines)
}

// check lets sha256sum read the lines.
func check(t *testing.T, root, lines string) {
	t.Helper()
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip("sha256sum is not installed")
	}
	cmd := exec.Command("sha256sum", "--check", "--strict", "-")
	cmd.Dir, cmd.Stdin = root, strings.NewReader(lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sha256sum --check: %v\n%s", err, out)
	}
}

func TestSingleFile(t *testing.T) {
	root := tree(t, map[string]string{"f": "x", "g": "y"})
	var sent transcript
	summary, err := call(t, t.Context(), filepath.Join(root, "f"), &sent)
	if err != nil || summary.Files != 1 || sent.text.String() != sumOf("x")+"  f\n" {
		t.Errorf("%+v, %v, %q", summary, err, sent.text.String())
	}
}

func TestManyFilesInOrder(t *testing.T) {
	files, names := map[string]string{}, []string(nil)
	for i := range 1500 {
		name := fmt.Sprintf("d%d/%d", i%7, i)
		files[name] = strings.Repeat("x", i)
		names = append(names, name)
	}
	slices.Sort(names)
	var want bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&want, "%s  %s\n", sumOf(files[name]), name)
	}
	var sent transcript
	t.Chdir(tree(t, files))
	summary, err := call(t, t.Context(), "", &sent)
	if err != nil || sent.text.String() != want.String() || summary.TreeSHA256 != sumOf(want.String()) {
		t.Errorf("%+v, %v: the lines are not those of all files in path order", summary, err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/nonexistent": "no such file", fifo: "neither a file nor a folder"} {
		if _, err := call(t, t.Context(), path, new(transcript)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", path, err, want)
		}
	}
}

// A file that cannot be read fails the call, but not the other lines.
func TestUnreadable(t *testing.T) {
	var sent transcript
	r := newReport(sent.output())
	files := make(chan *file, maxLogged+7)
	for range maxLogged + 5 {
		files <- ready("gone", read(t.Context(), "/nonexistent/gone"))
	}
	files <- ready("a", result{bytes: 3})
	files <- ready("b", result{bytes: 4})
	close(files)
	if err := r.print(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	if r.failures != maxLogged+5 || r.files != 2 || r.bytes != 7 || len(sent.logs) != maxLogged || !errors.Is(r.first, os.ErrNotExist) {
		t.Errorf("%+v, %d logged", r, len(sent.logs))
	}
}

func ready(name string, r result) *file {
	f := &file{name: name, done: make(chan result, 1)}
	f.done <- r
	return f
}

// What is streamed when the context ends has no gap.
func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("time is up")
	cancel(cause)
	var sent transcript
	files := make(chan *file, 3)
	files <- ready("a", result{bytes: 1})
	files <- ready("b", result{err: cause})
	files <- ready("c", result{bytes: 1})
	err := newReport(sent.output()).print(ctx, files)
	if !errors.Is(err, cause) || strings.Count(sent.text.String(), "\n") != 1 {
		t.Errorf("error %v after %q, want the cause after one line", err, sent.text.String())
	}
	if _, err := call(t, ctx, tree(t, map[string]string{"a": "x"}), &sent); !errors.Is(err, cause) {
		t.Errorf("error %v, want the context's cause", err)
	}
}

func TestEndsInMidCall(t *testing.T) {
	files := map[string]string{}
	for i := range 3000 {
		files[fmt.Sprintf("%04d", i)] = "x"
	}
	root := tree(t, files)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("time is up")
	sent := transcript{onText: func() { cancel(cause) }}
	if _, err := call(t, ctx, root, &sent); !errors.Is(err, cause) {
		t.Errorf("error %v, want the context's cause", err)
	}
	check(t, root, sent.text.String())
}

func TestHostGone(t *testing.T) {
	gone := errors.New("gone")
	out := plugin.NewOutput(func(*pluginv1.CallEvent) error { return gone })
	root := tree(t, map[string]string{"a": "x"})
	if _, err := checksum(t.Context(), Arguments{Path: root}, out); !errors.Is(err, gone) {
		t.Errorf("error %v, want %v", err, gone)
	}
}
