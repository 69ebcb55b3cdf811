package present

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

func result(change func(*api.Result)) *api.Result {
	r := supervisor.Verdict{Tool: "x", Status: api.StatusOK}.Result()
	r.Timing.ElapsedMs, r.Timing.TimeoutMs = 1500, new(int64(30_000))
	change(r)
	return r
}

func TestOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*api.Result)
		want   string
	}{
		"ok":                    {func(*api.Result) {}, "ok: x, 1.5s of 30s\n"},
		"overran":               {func(r *api.Result) { r.Overran = true }, "ok: x, 1.5s of 30s, over its soft budget\n"},
		"complete in the grace": {func(r *api.Result) { r.Kill.Cause = "abort" }, "ok: x, 1.5s of 30s, aborted, but complete\n"},
		"crashed by a signal": {func(r *api.Result) {
			r.Status, r.Exit.Signal = api.StatusCrashed, "SIGSEGV"
		}, "crashed: x, 1.5s of 30s, died of SIGSEGV\n"},
		"crashed by an exit": {func(r *api.Result) {
			r.Status, r.Exit.Code = api.StatusCrashed, new(3)
		}, "crashed: x, 1.5s of 30s, exit status 3\n"},
		"launcher killed": {func(r *api.Result) {
			r.Status, r.Reason = api.StatusCrashed, api.ReasonLauncher
		}, "crashed: x, its launcher was killed from outside, 1.5s of 30s\n"},
		"no result": {func(r *api.Result) {
			r.Status, r.Exit.Code = api.StatusNoResult, new(0)
		}, "no_result: x, 1.5s of 30s, exit status 0\n"},
		"crashed behind an adapter": {func(r *api.Result) {
			r.Status, r.Exit.Signal, r.ToolError = api.StatusCrashed, "SIGSEGV", &api.ToolError{Message: "server died of SIGSEGV"}
		}, "crashed: x, 1.5s of 30s, server died of SIGSEGV\n"},
		"human": {func(r *api.Result) { r.Timing.HumanWaitMs = 2000 }, "ok: x, 1.5s of 30s, waited 2s for a human\n"},
		"timeout": {func(r *api.Result) {
			r.Status, r.Reason, r.Kill = api.StatusTimeout, "deadline", api.Kill{Stage: "kill", Reaped: 51}
			r.Partial, r.Output.Content.KeptBytes = true, 2048
		}, "timeout: x, timed out after 30s, gone after 1.5s, 51 processes killed, 0 left, kept 2KiB of partial output\n"},
		"timeout whose reader has stopped": {func(r *api.Result) {
			r.Status, r.Reason, r.Timing.TimeoutMs = api.StatusTimeout, "deadline", new(int64(1000))
			r.Timing.ElapsedMs, r.Timing.DrainMs = 4000, 2990
		}, "timeout: x, timed out after 1s, gone after 1.01s, answered after 4s\n"},
		"SIGTERM reached nobody": {func(r *api.Result) {
			r.Status, r.Kill = api.StatusCancelled, api.Kill{Stage: "term"}
		}, "cancelled: x, 1.5s of 30s\n"},
		"memory limit": {func(r *api.Result) {
			r.Status, r.Reason, r.Limits.MemoryBytes = api.StatusOOM, api.ReasonMemory, 20<<20
		}, "oom: x, 1.5s of 30s, over its memory limit of 20MiB\n"},
		"memory of all calls": {func(r *api.Result) {
			r.Status, r.Reason, r.Limits.MemoryBytes = api.StatusOOM, api.ReasonHostMemory, 20<<20
		}, "oom: x, 1.5s of 30s\n"},
		"pids limit": {func(r *api.Result) { r.Status, r.Limits.Pids = api.StatusPidsLimit, 5 }, "pids_limit: x, 1.5s of 30s, at its limit of 5 processes and threads\n"},
		"CPU limit": {func(r *api.Result) {
			r.Status, r.Limits.CPUTimeMs = api.StatusCPULimit, 200
		}, "cpu_limit: x, 1.5s of 30s, over its limit of CPU time of 200ms\n"},
		"output limit": {func(r *api.Result) {
			r.Status, r.Limits.OutputTotalBytes = api.StatusOutputLimit, 1024
		}, "output_limit: x, 1.5s of 30s, over its limit of all output of 1KiB\n"},
		"cut": {func(r *api.Result) {
			r.Limits.OutputBytes, r.Output.Content.DroppedBytes = 1024, 4096
		}, "ok: x, 1.5s of 30s, 4KiB of content cut (output keeps 1KiB)\n"},
		"connections": {func(r *api.Result) {
			r.Status, r.Reason, r.Limits.Network = api.StatusNetworkLimit, "connectionsTotal", &api.NetworkLimits{TotalConnections: 1}
		}, "network_limit: x, 1.5s of 30s, over its network's limit of 1 connection in total\n"},
		"bytes sent": {func(r *api.Result) {
			r.Status, r.Reason, r.Limits.Network = api.StatusNetworkLimit, "sent", &api.NetworkLimits{SentBytes: 1024}
		}, "network_limit: x, 1.5s of 30s, over its network's limit of 1KiB sent\n"},
		"survivors": {func(r *api.Result) {
			r.Status, r.Kill = api.StatusUnkillable, api.Kill{Stage: "kill", Survivors: 2}
		}, "unkillable: x, 1.5s of 30s, 2 processes SURVIVED\n"},
		"denied": {func(r *api.Result) {
			r.Status, r.Message = api.StatusDenied, "[DENIED] The call was not made: \x1b[2Jno."
		}, `denied: The call was not made: \x1b[2Jno.` + "\n"},
		"cancelled": {func(r *api.Result) {
			r.Status, r.Message, r.Timing.ElapsedMs = api.StatusCancelled, "[CANCELLED] Turn aborted by user.", 0
		}, "cancelled: Turn aborted by user.\n"},
		"not made ready": {func(r *api.Result) {
			r.Status, r.Message, r.Timing.ElapsedMs = api.StatusStartFailed, "[FAILED] The tool cannot be started: no pack.", 0
		}, "start_failed: The tool cannot be started: no pack.\n"},
		"never began": {func(r *api.Result) {
			r.Status, r.ToolError = api.StatusInvalidArgs, &api.ToolError{Message: "no tool\nmore"}
		}, "invalid_args: no tool\n"},
		"no command": {func(r *api.Result) {
			r.Status, r.Reason, r.ToolError, r.Timing.RunMs = api.StatusStartFailed, "not_found", &api.ToolError{Message: "no command"}, 31
		}, "start_failed: no command\n"},
		"not executable": {func(r *api.Result) {
			r.Status, r.Reason, r.ToolError, r.Timing.RunMs = api.StatusStartFailed, "not_executable", &api.ToolError{Message: "cannot execute"}, 31
		}, "start_failed: cannot execute\n"},
		"failed at its start": {func(r *api.Result) {
			r.Status, r.Reason, r.ToolError, r.Timing.RunMs = api.StatusStartFailed, "server", &api.ToolError{Message: "no server"}, 31
		}, "start_failed: x, 1.5s of 30s, no server\n"},
		"endless": {func(r *api.Result) {
			r.Status, r.ToolError = api.StatusToolError, &api.ToolError{Message: strings.Repeat("ä", 4<<20)}
		}, "tool_error: x, 1.5s of 30s, " + strings.Repeat("ä", maxErrorRunes-1) + "…\n"},
		"warnings": {func(r *api.Result) { r.Warnings = []string{"one\ntwo", "three"} }, "ok: x, 1.5s of 30s\nwarning: one\\ntwo\nwarning: three\n"},
	} {
		if got := Outcome(result(test.change)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestProblem(t *testing.T) {
	endless := strings.Repeat("\x00", 1<<20)
	for name, test := range map[string]struct {
		change func(*api.Result)
		want   string
	}{
		"of the tool": {func(r *api.Result) { r.ToolError = &api.ToolError{Message: "bad\nmore"} }, "bad"},
		"endless":     {func(r *api.Result) { r.ToolError = &api.ToolError{Message: endless} }, strings.Repeat(`\x00`, maxErrorRunes-1) + "…"},
		"of the host": {func(r *api.Result) { r.Message = "[FAILED] so" }, "[FAILED] so"},
	} {
		if got := Problem(result(test.change)); got != test.want {
			t.Errorf("%s: got %.300q, want %.300q", name, got, test.want)
		}
	}
}

func TestContent(t *testing.T) {
	r := result(func(r *api.Result) {
		r.Content = []api.Content{
			{Type: "text", Text: "a\x1b[2J"},
			{Type: "json", JSON: []byte(`{"b":1}`)},
			{Type: "blob", MIMEType: "image/png", Data: make([]byte, 1024)},
			{Type: "resource_link", Name: "n", URI: "file:///x"},
		}
		r.Structured = []byte("7")
	})
	for people, first := range map[bool]string{true: `a\x1b[2J`, false: "a\x1b[2J"} {
		var b strings.Builder
		if err := Content(&b, r, people); err != nil {
			t.Error(err)
		}
		if want := first + "\n{\"b\":1}\n[image/png, 1KiB]\n[n file:///x]\n7\n"; b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
	if err := Content(broken{}, r, false); err == nil {
		t.Error("what could not be written was not told of")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestLastWords(t *testing.T) {
	long := strings.Repeat("line of text\n", 1000)
	for name, test := range map[string]struct {
		status api.Status
		stderr string
		want   string
	}{
		"success":  {api.StatusOK, "warning", ""},
		"silent":   {api.StatusToolError, " \n", ""},
		"short":    {api.StatusToolError, "no such\x1b[2J file\n", `no such\x1b[2J file` + "\n"},
		"lines":    {api.StatusCrashed, long + "last", "...\n" + long[len(long)-13*(2044/13):] + "last\n"},
		"one line": {api.StatusCrashed, strings.Repeat("ä", 3000), "...\n" + strings.Repeat("ä", 1024) + "\n"},
	} {
		r := result(func(r *api.Result) { r.Status, r.Output.Stderr.Head = test.status, test.stderr })
		if got := LastWords(r); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	gap := result(func(r *api.Result) {
		r.Status = api.StatusToolError
		r.Output.Stderr = api.StreamOutput{Head: "first\nsec", Tail: "eventh\nlast\n", DroppedBytes: 30}
	})
	if got := LastWords(gap); got != "...\nlast\n" {
		t.Errorf("behind a gap: %q", got)
	}
	r := result(func(r *api.Result) {
		r.Status, r.Content = api.StatusToolError, nil
		r.ToolError = &api.ToolError{Message: "no browser\n 1. install one"}
	})
	if got := LastWords(r); got != "no browser\n 1. install one\n" {
		t.Errorf("of an error of two lines: %q", got)
	}
	r.ToolError.Message = strings.Repeat("x", 3000)
	if got := LastWords(r); got != r.ToolError.Message+"\n" {
		t.Errorf("of an error of one long line: %q", got)
	}
	r.Content = []api.Content{{Type: "text", Text: r.ToolError.Message}}
	if got := LastWords(r); got != "" {
		t.Errorf("of one that is shown as content: %q", got)
	}
}

func TestPlaceholdersAreOneLine(t *testing.T) {
	for want, c := range map[string]api.Content{
		`[a\nb, 1B]`:                     {Type: "blob", MIMEType: "a\nb", Data: []byte("x")},
		"[application/octet-stream, 3B]": {Type: "blob", Data: []byte("xyz")},
		`[a\nb file:///\x1b]`:            {Type: "resource_link", Name: "a\nb", URI: "file:///\x1b"},
	} {
		if got := Placeholder(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A process that the kernel killed for its memory, while it was told to end, was not ended
// by SIGTERM.
func TestWhatEndsForWantOfMemoryInItsGrace(t *testing.T) {
	r := &api.Result{Status: api.StatusTimeout, Kill: api.Kill{Stage: "term", Cause: "deadline", Reaped: 1}, Usage: api.Usage{OOMKills: 1}}
	if got := strings.Join(endPhrases(r), ", "); !strings.Contains(got, "1 process ended by SIGTERM or for want of memory, 0 left") {
		t.Error(got)
	}
}
