package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
)

// The smallest useful host is a promise: under 25 lines, imports and all.
func TestFitsOnACard(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(source, []byte("\n")); lines >= 25 {
		t.Errorf("main.go has %d lines, want fewer than 25", lines)
	}
}

func TestRunsATool(t *testing.T) {
	minimal, search := built(t)
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.txt"), []byte("one\nTODO two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(minimal, search, `{"pattern":"TODO","path":"`+root+`"}`)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil && os.Geteuid() != 0 {
		t.Skipf("needs root, or a cgroup delegated to this user: %s", out)
	}
	if want := "ok " + root + "/a.txt:2: TODO two\n"; err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("got %v, %q; want %q", err, out, want)
	}
}

func TestTellsItsUsage(t *testing.T) {
	minimal, _ := built(t)
	if out, err := exec.Command(minimal).CombinedOutput(); err == nil || !strings.HasSuffix(string(out), "usage: minimal TOOL ARGUMENTS\n") {
		t.Errorf("got %v, %q", err, out)
	}
}

// A call that fails is not a failure of the host: it says what happened.
func TestTellsOfAFailure(t *testing.T) {
	minimal, search := built(t)
	out, err := exec.Command(minimal, search, `{"pattern":"("}`).CombinedOutput()
	if err != nil && os.Geteuid() != 0 {
		t.Skipf("needs root, or a cgroup delegated to this user: %s", out)
	}
	if err != nil || !strings.HasPrefix(string(out), "tool_error ") || !strings.Contains(string(out), "missing closing )") {
		t.Errorf("got %v, %q; want the status and the tool's own words", err, out)
	}
}

// built are the binaries of this host and of an example tool.
func built(t *testing.T) (minimal, search string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command, to build the host and a tool")
	}
	dir := t.TempDir()
	if err := binaries.Into(dir, "minimal", "search"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "minimal"), filepath.Join(dir, "search")
}
