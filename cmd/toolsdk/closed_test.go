package main

import (
	"os"
	"os/exec"
	"testing"
)

// Where nobody reads the output any more, a command ends by itself, having removed what it has
// made, and not by the signal.
func TestClosedOutput(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"describe", "run"} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = read.Close()
		cmd := exec.Command(self, asToolsdk, command, self)
		cmd.Stdout = write
		err = cmd.Run()
		_ = write.Close()
		if code := cmd.ProcessState.ExitCode(); code != 141 { // -1 is a signal's
			t.Errorf("%s: status %d, %v", command, code, err)
		}
	}
}
