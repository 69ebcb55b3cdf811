package supervisor_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/supervisor"
)

// What a call would execute is a plugin's binary, a command's first word, and behind an
// adapter what starts the server.
func TestProgram(t *testing.T) {
	t.Parallel()
	host := newHost(t, supervisor.Config{})
	dir := t.TempDir()
	script := []byte("#!/bin/sh\n")
	if err := os.WriteFile(filepath.Join(dir, "tool"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(script)
	want := hex.EncodeToString(sum[:])
	for what, r := range map[string]supervisor.Request{
		"a plugin":           {Tool: supervisor.Tool{Path: filepath.Join(dir, "tool")}},
		"a command":          {Command: &supervisor.Command{Argv: []string{filepath.Join(dir, "tool"), "x"}}},
		"a command of a dir": {Command: &supervisor.Command{Argv: []string{"./tool"}}, Dir: dir},
		"a server":           {Tool: supervisor.Tool{Path: self, Adapter: true, Args: []string{"adapter", "mcp", "--", filepath.Join(dir, "tool")}}},
	} {
		if got, err := host.Program(r); got != want || err != nil {
			t.Errorf("of %s: %q, %v", what, got, err)
		}
	}
	shell, err := host.Program(supervisor.Request{Command: &supervisor.Command{Argv: []string{"sh"}}})
	if err != nil || shell == "" || shell == want {
		t.Errorf("of a command in PATH: %q, %v", shell, err)
	}
	if got, err := host.Program(supervisor.Request{Command: &supervisor.Command{Argv: []string{filepath.Join(dir, "none")}}}); got != "" || err == nil {
		t.Errorf("of nothing: %q, %v", got, err)
	}
}
