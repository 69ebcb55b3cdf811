package sandbox

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// What one host has found, another one recalls, and nothing else.
func TestRecall(t *testing.T) {
	dir := t.TempDir()
	open := func() *Host {
		h, err := Open(dir)
		must(t, err)
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	first, second := open(), open()
	if f, ok := second.Recall(); ok {
		t.Fatalf("nothing was tried yet, and %+v is recalled", f)
	}
	found, err := first.Probe(wait.Context(t), nil)
	must(t, err)
	if found.find(FeatureRoot).State != Yes || found.landlock == 0 {
		t.Skip("only a trial that met everything is remembered")
	}
	recalled := func() bool {
		f, ok := second.Recall()
		if ok && !reflect.DeepEqual(f, found) {
			t.Errorf("recalled %+v, found %+v", f, found)
		}
		return ok
	}
	if !recalled() {
		t.Error("not recalled")
	}
	path := second.recallPath()
	known, err := os.ReadFile(path)
	must(t, err)
	other := []byte(strings.Map(func(r rune) rune { return r ^ 1 }, string(known)))
	for name, spoil := range map[string]func() error{
		"other circumstances":  func() error { return os.WriteFile(path, other, 0o600) },
		"more than was kept":   func() error { return os.WriteFile(path, append(known[:10:10], known...), 0o600) },
		"writable by others":   func() error { return os.Chmod(path, 0o666) },
		"a link":               func() error { return os.Rename(path, path+"-2") },
		"forgotten":            second.Forget,
		"forgotten once again": second.Forget,
	} {
		must(t, os.RemoveAll(path))
		must(t, os.WriteFile(path, known, 0o600))
		if !recalled() {
			t.Errorf("before %s: not recalled", name)
		}
		must(t, spoil())
		if name == "a link" {
			must(t, os.Symlink(path+"-2", path))
		}
		if recalled() {
			t.Errorf("%s: recalled", name)
		}
	}
}

// Rights that the process has not, or has more of, are another circumstance.
func TestCircumstances(t *testing.T) {
	w := enter(t)
	f := w.assume()
	before := f.circumstances()
	if again := w.assume().circumstances(); again != before {
		t.Error("the same circumstances differ")
	}
	f.landlock++
	if f.circumstances() == before {
		t.Error("another Landlock is the same")
	}
}
