package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A signal that was ignored at the start stays so, as nohup(1) wants it; one that was not
// ends the call.
func TestSignalsThatAreIgnored(t *testing.T) {
	needShell(t)
	t.Parallel()
	for _, x := range []struct {
		begin  string
		signal syscall.Signal
		code   int
	}{{`trap "" HUP; `, syscall.SIGHUP, 0}, {"", syscall.SIGTERM, 130}} {
		var stdout bytes.Buffer
		events := &lines{}
		cmd := exec.CommandContext(wait.Context(t), "sh", "-c", x.begin+`exec "$0" "$@"`, testBinary(t), asToolhost,
			"exec", "--config", os.DevNull, "--state", "none", "--events", "--", "sh", "-c", "echo begun; read line; echo end")
		cmd.Stdout, cmd.Stderr = &stdout, events
		stdin, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "output to come", func() bool { return strings.Contains(events.String(), `"tool_output"`) })
		if err := cmd.Process.Signal(x.signal); err != nil {
			t.Fatal(err)
		}
		if x.code == 0 {
			_, _ = stdin.Write([]byte("\n"))
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != x.code || (x.code == 0) != strings.Contains(stdout.String(), "end") {
			t.Errorf("%s: exit status %d, %q", x.signal, got, stdout.String())
		}
	}
}
