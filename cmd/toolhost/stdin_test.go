package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/pty"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A command cannot tell an input that is cut off from one that has ended.
func TestAnInputThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	needShell(t)
	folder, err := os.Open(t.TempDir()) // each read of which fails
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for _, flag := range []string{"--json", "--headless"} {
		cmd := exec.Command(testBinary(t), asToolhost, "exec", flag, "--", "cat")
		cmd.Stdin = folder
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "cannot read all of the command's input: is a directory") {
			t.Errorf("%s: %v: %s", flag, err, out)
		}
	}
	if out, err := exec.Command(testBinary(t), asToolhost, "exec", "--json", "--", "true").CombinedOutput(); err != nil || strings.Contains(string(out), "cannot read") {
		t.Errorf("%v: %s", err, out)
	}
}

// A job in the background leaves the terminal to others, and goes on.
func TestAJobInTheBackgroundReadsNothing(t *testing.T) {
	t.Parallel()
	needShell(t)
	p := pty.New(t)
	job := `set -m; "$0" "$@" & read line; echo "read $line"; fg`
	cmd := exec.CommandContext(wait.Context(t), "sh", "-c", job, testBinary(t), asToolhost, "exec", "--", "sh", "-c", "echo began; cat")
	p.Attach(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Expect(t, "began", 1)
	p.Type(t, "first\n")
	p.Expect(t, "read first", 1)
	p.Type(t, "second\n\x04")
	p.Expect(t, "second", 2) // the terminal's echo, and the command's
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
