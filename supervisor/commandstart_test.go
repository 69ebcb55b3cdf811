package supervisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// What cannot be started is described with the remedy, and as env(1) tells it apart.
func TestCommandsThatCannotStart(t *testing.T) { // not beside others: a fork in between keeps what was written open (ETXTBSY)
	needShell(t) // the VM's files can be granted to no call either
	host := newHost(t, supervisor.Config{})
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inside := write("in", "#!/bin/sh\n$1\n", 0o755)
	for _, test := range []struct {
		argv   []string
		want   string
		reason api.Reason
	}{
		{[]string{"nosuch-xyz"}, `no command "nosuch-xyz" in PATH: install it below /usr, or give its path`, api.ReasonNotFound},
		{[]string{""}, `no command "" in PATH: install it below /usr, or give its path`, api.ReasonNotFound},
		{[]string{write("orphan", "#!/no/such/interpreter\n", 0o755)}, "is not there: install that below /usr, or grant", api.ReasonNotExecutable},
		{[]string{write("text", "hello\n", 0o755)}, "nor a script with #!: build it for this architecture, or name its interpreter", api.ReasonNotExecutable},
		{[]string{write("plain", "#!/bin/sh\n", 0o644)}, "permission denied: chmod +x it", api.ReasonNotExecutable},
		{[]string{dir}, "it is a folder: name the executable in it", api.ReasonNotExecutable},
		{[]string{inside, strings.Repeat("x", 1<<17)}, "cannot execute " + inside + ": argument list too long: one argument or variable may have 131071 bytes", api.ReasonNotExecutable},
		{[]string{"echo", strings.Repeat("x", 1<<17)}, "cannot execute echo: argument list too long: one argument", api.ReasonNotExecutable},
	} {
		r := host.Call(t.Context(), supervisor.Request{
			Command: &supervisor.Command{Argv: test.argv}, Sandbox: &supervisor.Policy{Read: []string{dir}},
		})
		wantStatus(t, r, api.StatusStartFailed)
		if r.Reason != test.reason || !strings.Contains(r.Message, test.want) && !strings.Contains(r.ToolError.Message, test.want) {
			t.Errorf("%.80q: reason %s, message %.300q, %+v, want %q", test.argv, r.Reason, r.Message, r.ToolError, test.want)
		}
	}
}
