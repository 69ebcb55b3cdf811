package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
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
