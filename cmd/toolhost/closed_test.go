package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A command whose output nobody reads any more leaves nothing behind.
func TestClosedOutputLeavesNothing(t *testing.T) {
	t.Parallel()
	wholeSystem(t)
	dir, err := os.MkdirTemp("", "th") // a short path, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "toolhost.yaml")
	if err := os.WriteFile(file, []byte("dirs: {runtime: run}\ntools: {t: {command: [echo, x]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	batch := filepath.Join(dir, "batch.json")
	if err := os.WriteFile(batch, []byte(`[{"tool":"t"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"explain", "t"}, {"run", "t"}, {"turn", "--state", "none", batch}} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = read.Close()
		cmd := exec.Command(testBinary(t), append([]string{asToolhost, args[0], "--config", file}, args[1:]...)...)
		cmd.Stdout = write
		err = cmd.Run()
		_ = write.Close()
		if code := cmd.ProcessState.ExitCode(); code != 141 {
			t.Errorf("%s: status %d, %v", args[0], code, err)
		}
		if left, err := filepath.Glob(dir + "/run/h*"); err != nil || len(left) > 0 {
			t.Errorf("%s left %q, %v", args[0], left, err)
		}
	}
}

// A command that makes no call leaves an older trace as it is.
func TestNoCallKeepsAnOlderTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace.json")
	for name, mode := range map[string]os.FileMode{"trace.json": 0o600, "plugin": 0o700} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/true\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"nosuchtool", dir + "/plugin"} {
		_, code := runIn(dir, testBinary(t), "run", "--trace", trace, tool)
		if text, err := os.ReadFile(trace); err != nil || string(text) != "#!/bin/true\n" || code == 0 {
			t.Errorf("%s: status %d, trace %q, %v", tool, code, text, err)
		}
	}
}

// A plugin is not run to be described where nothing may be.
func TestToolsRunsNothingThatIsDenied(t *testing.T) {
	t.Parallel()
	plugin := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(plugin, []byte("#!/bin/true\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testBinary(t), asToolhost, "tools", plugin)
	cmd.Env = append(os.Environ(), "TOOLHOST_MODE=deny")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "/plugin is not run to be described: mode is deny (") {
		t.Errorf("%v: %s", err, out)
	}
}
