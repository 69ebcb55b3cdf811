package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A call whose daemon dies has a result, too, with what had come until then.
func TestCallOfADaemonThatDies(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{true, false} {
		d := serve(t, remoteTools)
		var stdout bytes.Buffer
		events := &lines{}
		cmd := exec.CommandContext(wait.Context(t), testBinary(t), asToolhost, "call", "--events", "--json="+strconv.FormatBool(asJSON), "--socket", d.socket, "count")
		cmd.Stdout, cmd.Stderr = &stdout, events
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "output to come", func() bool { return strings.Contains(events.String(), `"tool_output"`) })
		d.killed = true
		if err := syscall.Kill(d.pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exit.Host {
			t.Errorf("exit code %d, want %d", cmd.ProcessState.ExitCode(), exit.Host)
		}
		if !asJSON {
			if !strings.HasPrefix(stdout.String(), "1\n") {
				t.Errorf("stdout %q lacks what had come", stdout.String())
			}
			continue
		}
		var r api.Result
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, stdout.String())
		}
		if r.Status != api.StatusLost || !r.Partial || !strings.HasPrefix(r.Text(), "1\n") || r.Retry.Retryable || r.TurnID == "" || r.Timing.ElapsedMs == 0 {
			t.Errorf("result %s", stdout.String())
		}
	}
}

// What a worker runs outlives the daemon for as long as the lease, and the result says so.
func TestACallAtAWorkerWhoseDaemonDies(t *testing.T) {
	s := &callSession{where: &api.Where{Worker: "w1", Attempt: 1, StillRunning: "unknown"}}
	r := s.lost(api.Call{ID: "one", Tool: "count"}, client.ErrBrokenOff)
	if r.Where == nil || r.Where.StillRunning != "unknown" || !strings.Contains(r.Message, "worker w1 ends it with the lease") || strings.Contains(r.Message, "kills all") {
		t.Errorf("%+v: %s", r.Where, r.Message)
	}
}

// Nobody has to wait for a daemon that answers nothing, also where the call may be made
// again.
func TestASignalBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	d := serve(t, remoteTools)
	if err := syscall.Kill(d.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(d.pid, syscall.SIGCONT) })
	wait.Until(t, "the daemon has stopped", func() bool { return stopped(d.pid) })
	for _, retries := range []string{"0", "2"} {
		cmd := exec.CommandContext(wait.Context(t), testBinary(t), asToolhost, "call", "--socket", d.socket, "--retries", retries, "count")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = cmd.Wait()
		}()
		for ended := false; !ended; { // it may not catch signals yet
			_ = cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-over:
				ended = true
			case <-time.After(50 * time.Millisecond):
			}
		}
		if s := cmd.ProcessState; s.Success() || s.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			t.Errorf("--retries %s: %s", retries, s)
		}
	}
}
