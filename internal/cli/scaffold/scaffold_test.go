package scaffold

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checkout is this module itself.
func checkout(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNew(t *testing.T) {
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("builds with go, which the VM does not have")
	}
	dir := filepath.Join(t.TempDir(), "my greet") // a blank in the path
	p, err := New(t.Context(), Options{Name: "greet-2", Dir: dir, SDK: checkout(t), NoTidy: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Makefile", "README.md", ".gitignore", "main.go", "main_test.go", "toolhost.yaml", "toolsdk.yaml", "go.mod", "go.sum"}
	if !slices.Equal(p.Files, want) || p.Warning != "" {
		t.Errorf("made %q, warning %q", p.Files, p.Warning)
	}
	run(t, dir, "make")
	run(t, dir, "make", "test")
	format := exec.Command("go", "tool", "gofumpt", "-l", dir) // on a fresh machine it is downloaded first
	format.Dir, format.Stderr = checkout(t), os.Stderr
	if out, err := format.Output(); err != nil || len(out) > 0 {
		t.Errorf("not formatted: %v: %s", err, out)
	}
	out := run(t, dir, "go", "version", "-m", "greet-2")
	if !strings.Contains(out, "example.com/greet-2") {
		t.Errorf("built %s", out)
	}
	for name, want := range map[string]string{"Makefile": "TOOLSDK ?= toolsdk\n", "README.md": checkout(t), ".gitignore": "/greet-2\n", "toolhost.yaml": "plugin: ./greet-2\n"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(raw), want) || strings.Contains(string(raw), "{{") {
			t.Errorf("%s: %v, no %q in %s", name, err, want, raw)
		}
	}
}

// run runs a command without a network.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Without a network the project is whole, and the user knows.
func TestTidyThatDoesNotWork(t *testing.T) {
	for _, test := range []struct{ what, key, value, want string }{
		{"no go", "PATH", t.TempDir(), "executable file not found"},
		{"no network", "GOPROXY", "off", ""},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Setenv(test.key, test.value)
			t.Setenv("GOMODCACHE", t.TempDir())
			t.Setenv("GOFLAGS", "-modcacherw")
			dir := filepath.Join(t.TempDir(), "x")
			p, err := New(t.Context(), Options{Name: "x", Dir: dir, SDK: checkout(t)})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(p.Warning, "go mod tidy did not work") || !strings.Contains(p.Warning, test.want) || strings.Contains(p.Warning, "\n") {
				t.Errorf("warning %q", p.Warning)
			}
			mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err != nil || !strings.Contains(string(mod), "google.golang.org/grpc v") {
				t.Errorf("go.mod: %s, %v", mod, err)
			}
		})
	}
}

func TestAReleaseNeedsNoCheckout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	if _, err := New(t.Context(), Options{Name: "x", Module: "example.org/a/b", Dir: dir, Release: "v1.2.3", NoTidy: true}); err != nil {
		t.Fatal(err)
	}
	mod, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
	if want := "module example.org/a/b\n\ngo 1.26.0\n\nrequire github.com/toolhost/toolhost v1.2.3\n"; string(mod) != want {
		t.Errorf("go.mod:\n%s", mod)
	}
	readme, _ := os.ReadFile(filepath.Join(dir, "README.md"))
	if strings.Contains(string(readme), "replace") {
		t.Errorf("README.md: %s", readme)
	}
}

func TestRefusals(t *testing.T) {
	sdk := checkout(t)
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{Name: ""}, `name ""`},
		{Options{Name: "two words"}, "want a letter"},
		{Options{Name: "../x"}, "want a letter"},
		{Options{Name: "1x"}, "want a letter"},
		{Options{Name: strings.Repeat("x", 65)}, "want a letter"},
		{Options{Name: "session_status"}, "is taken"},
		{Options{Name: "Makefile"}, "is taken"},
		{Options{Name: "x", Module: "a b"}, `"a b" is not a valid`},
		{Options{Name: "x", Module: "/a"}, "is not a valid module path"},
		{Options{Name: "x", Module: "a/../b"}, "is not a valid module path"},
		{Options{Name: "x", Module: "a\nreplace"}, "is not a valid module path"},
		{Options{Name: "x", Dir: "/nonexistent/x", SDK: sdk}, "cannot make the folder /nonexistent/x: no such file"},
	} {
		t.Chdir(t.TempDir())
		_, err := New(t.Context(), test.o)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v; want %q", test.o, err, test.want)
		}
		if left, _ := os.ReadDir("."); len(left) > 0 {
			t.Errorf("%+v left %v", test.o, left)
		}
	}
}

func TestNothingIsOverwrittenOrLeftBehind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Options{Name: "x", Dir: dir, SDK: checkout(t)}); err == nil || !strings.Contains(err.Error(), "exists: remove it") {
		t.Errorf("over a folder: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, o := range map[string]Options{"a": {SDK: "/nonexistent"}, "b": {SDK: checkout(t)}} {
		o.Name, o.Dir = name, filepath.Join(t.TempDir(), "y")
		if _, err := New(ended, o); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Lstat(o.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: left behind: %v", name, err)
		}
	}
}

func TestFindSDK(t *testing.T) {
	sdk := t.TempDir()
	deep := filepath.Join(sdk, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sdk, "go.mod"), []byte("// x\nmodule github.com/toolhost/toolhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "toolsdk")
	if err := os.Symlink(filepath.Join(deep, "toolsdk"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(deep, "toolsdk"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	for _, test := range []struct{ named, env, executable, workDir, want, err string }{
		{sdk, "", "", other, sdk, ""},
		{"", sdk, "", other, sdk, ""},
		{"", "", filepath.Join(deep, "toolsdk"), other, sdk, ""},
		{"", "", link, other, sdk, ""},
		{"", "", "/usr/bin/toolsdk", deep, sdk, ""},
		{other, sdk, "", deep, "", "--sdk " + other + " is not a checkout"},
		{"", other, "", deep, "", "$TOOLSDK_SDK " + other + " is not a checkout"},
		{"", "", "/usr/bin/toolsdk", other, "", "name one with --sdk PATH, or in $TOOLSDK_SDK"},
	} {
		t.Setenv(SDKVar, test.env)
		got, err := FindSDK(test.named, test.executable, test.workDir)
		if got != test.want || test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%+v: %s, %v", test, got, err)
		}
	}
}

func TestRequirements(t *testing.T) {
	version, required := requirements("module m\n\ngo 1.30\nrequire a v1 // indirect\nrequire (\n\tb v2\n\tc v3 // indirect\n)\ntool (\n\td\n\te f\n)\nexclude x v1\n")
	if version != "1.30" || !slices.Equal(required, []string{"a v1", "b v2", "c v3"}) {
		t.Errorf("%s, %q", version, required)
	}
}
