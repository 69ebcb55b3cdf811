package adapter

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugin"
)

// What cannot be started is told of with the remedy, and as env(1) tells it apart.
func TestCannotStart(t *testing.T) { // not beside others: a fork in between keeps what was written open (ETXTBSY)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct {
		command, want string
		missing       bool
	}{
		{"nosuch-xyz", `no command "nosuch-xyz" in PATH: install it below /usr, or give its path`, true},
		{dir + "/gone", "no command at " + dir + "/gone: correct the path, or grant the call to read it", true},
		{write("orphan", "#!/no/such/interpreter\n", 0o700), "is not there: install that below /usr, or grant", false},
		{write("text", "hello\n", 0o700), "nor a script with #!: build it for this architecture, or name its interpreter", false},
		{write("plain", "#!/bin/sh\n", 0o600), "permission denied: chmod +x it", false},
		{dir, "it is a folder: name the executable in it", false},
	} {
		path, err := exec.LookPath(test.command)
		if err == nil {
			err = exec.Command(path).Run()
		}
		got, ok := cannotStart(test.command, err).(*plugin.CommandExit)
		if !ok || got.Missing != test.missing || got.NotExecutable == test.missing || !strings.Contains(got.Error(), test.want) {
			t.Errorf("%s: %+v of %v, want %q", test.command, got, err, test.want)
		}
	}
}
