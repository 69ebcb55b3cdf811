package outcome

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
)

func TestClassify(t *testing.T) {
	var (
		success   = &pluginv1.Result{}
		failure   = &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_ERROR}}
		cancelled = &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_CANCELLED}}
		badArgs   = &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_INVALID_ARGUMENTS}}
		missing   = &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_COMMAND_NOT_FOUND}}
		exit3     = &pluginv1.Result{Exit: &pluginv1.CommandExit{Code: 3}}
		crashed   = &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_CRASHED}
		segv      = &pluginv1.Result{Exit: &pluginv1.CommandExit{Signal: "SIGSEGV"}}
		broken    = &host.ProtocolError{Reason: "a second result"}
		killed    = syscall.WaitStatus(syscall.SIGKILL)
		sigsys    = syscall.WaitStatus(syscall.SIGSYS)
		exit0     = syscall.WaitStatus(0)
		exit1     = syscall.WaitStatus(1 << 8)
		oom       = cgroup.Usage{OOMKills: 1}
		pids      = cgroup.Usage{PidsLimitHits: 3}
		outerOOM  = cgroup.Usage{AncestorOOMKills: 1}
	)
	for _, test := range []struct {
		name string
		e    Evidence
		want api.Status
	}{
		{"success", Evidence{Final: success}, api.StatusOK},
		{"success during grace", Evidence{Final: success, Cause: CauseDeadline}, api.StatusOK},
		{"success after an OOM kill of a grandchild", Evidence{Final: success, Usage: oom}, api.StatusOK},
		{"success with survivors", Evidence{Final: success, Survivors: 1}, api.StatusUnkillable},
		{"error", Evidence{Final: failure}, api.StatusToolError},
		{"error after the deadline", Evidence{Final: failure, Cause: CauseDeadline}, api.StatusTimeout},
		{"cancelled after an abort", Evidence{Final: cancelled, Cause: CauseAbort}, api.StatusCancelled},
		{"non-zero exit", Evidence{Final: exit3}, api.StatusToolError},
		{"non-zero exit after the deadline", Evidence{Final: exit3, Cause: CauseDeadline}, api.StatusTimeout},
		{"non-zero exit after an OOM kill", Evidence{Final: exit3, Usage: oom}, api.StatusOOM},
		{"command died of a signal", Evidence{Final: segv}, api.StatusCrashed},
		{"command not found", Evidence{Final: missing, ours: true}, api.StatusStartFailed},
		{"command not found by another tool", Evidence{Final: missing}, api.StatusToolError},
		{"undecodable arguments", Evidence{Final: badArgs}, api.StatusInvalidArgs},
		{"idle", Evidence{Cause: CauseIdle, Exited: true, Exit: killed}, api.StatusTimeout},
		{"stream total", Evidence{Cause: CauseTotal}, api.StatusTimeout},
		{"OOM event", Evidence{Cause: CauseOOM}, api.StatusOOM},
		{"OOM found afterwards", Evidence{Exited: true, Exit: killed, Usage: oom}, api.StatusOOM},
		{"OOM of the host's total", Evidence{Exited: true, Exit: killed, Usage: outerOOM}, api.StatusOOM},
		{"non-zero exit after an OOM of the host's total", Evidence{Final: exit3, Usage: outerOOM}, api.StatusOOM},
		{"success after an OOM of the host's total", Evidence{Final: success, Usage: outerOOM}, api.StatusOK},
		{"OOM while starting", Evidence{StartErr: errors.New("x"), Usage: oom}, api.StatusOOM},
		{"OOM after the deadline", Evidence{Cause: CauseDeadline, Usage: oom}, api.StatusTimeout},
		{"CPU time", Evidence{Cause: CauseCPU}, api.StatusCPULimit},
		{"a limit of the network", Evidence{Cause: CauseNetwork}, api.StatusNetworkLimit},
		{"output", Evidence{Cause: CauseOutputTotal}, api.StatusOutputLimit},
		{"start failed", Evidence{StartErr: errors.New("x")}, api.StatusStartFailed},
		{"deadline while starting", Evidence{StartErr: errors.New("x"), Cause: CauseDeadline}, api.StatusTimeout},
		{"refused arguments", refuse(api.StatusInvalidArgs, "schema"), api.StatusInvalidArgs},
		{"second result", Evidence{Final: success, StreamErr: broken}, api.StatusProtocolError},
		{"broken stream after the deadline", Evidence{StreamErr: broken, Cause: CauseDeadline}, api.StatusTimeout},
		{"closed connection", Evidence{StreamErr: host.ErrDisconnected}, api.StatusProtocolError},
		{"no result", Evidence{Exited: true, Exit: exit0, StreamErr: host.ErrDisconnected}, api.StatusNoResult},
		{"exit before a result", Evidence{Exited: true, Exit: exit1}, api.StatusCrashed},
		{"signal", Evidence{Exited: true, Exit: killed}, api.StatusCrashed},
		{"seccomp", Evidence{Exited: true, Exit: sigsys}, api.StatusPolicyViolation},
		{"pids limit", Evidence{Exited: true, Exit: exit1, Usage: pids}, api.StatusPidsLimit},
		{"pids limit while starting", Evidence{StartErr: errors.New("x"), Exited: true, Exit: exit1, Usage: pids}, api.StatusPidsLimit},
		{"pids limit of what is behind a refusal", Evidence{StartErr: &Refusal{Status: api.StatusInvalidArgs, Reason: "schema", Err: errors.New("x")}, Usage: pids}, api.StatusInvalidArgs},
		{"pids limit, and lives on", Evidence{StreamErr: host.ErrDisconnected, Usage: pids}, api.StatusPidsLimit},
		{"command died of the filter", Evidence{Final: &pluginv1.Result{Exit: &pluginv1.CommandExit{Signal: "SIGSYS"}}, ours: true}, api.StatusPolicyViolation},
		{"server died of the filter", Evidence{Final: &pluginv1.Result{Error: crashed, Exit: &pluginv1.CommandExit{Signal: "SIGSYS"}}, ours: true}, api.StatusPolicyViolation},
		{"server died", Evidence{Final: &pluginv1.Result{Error: crashed, Exit: &pluginv1.CommandExit{Signal: "SIGKILL"}}, ours: true}, api.StatusCrashed},
		{"server exited", Evidence{Final: &pluginv1.Result{Error: crashed, Exit: &pluginv1.CommandExit{Code: 3}}, ours: true}, api.StatusCrashed},
		{"an error and too much output", Evidence{Final: failure, OverTotal: true}, api.StatusOutputLimit},
		{"a success and too much output", Evidence{Final: success, OverTotal: true}, api.StatusOK},
		{"an error after a limit of the network", Evidence{Final: failure, OverNetwork: "sent"}, api.StatusNetworkLimit},
		{"a death after a limit of the network", Evidence{Exited: true, Exit: exit1, OverNetwork: "sent"}, api.StatusNetworkLimit},
		{"a success after a limit of the network", Evidence{Final: success, OverNetwork: "sent"}, api.StatusOK},
		{"a timeout before a limit of the network", Evidence{Cause: CauseDeadline, OverNetwork: "sent"}, api.StatusTimeout},
		{"a death and too much output", Evidence{Exited: true, Exit: exit1, OverTotal: true}, api.StatusOutputLimit},
		{"pids limit with a result is Evidence only", Evidence{Final: failure, Usage: pids}, api.StatusToolError},
	} {
		if got := classify(test.e); got.status != test.want {
			t.Errorf("%s: %s, want %s", test.name, got.status, test.want)
		}
	}
}

// What a tool says of its failure is bounded, as its output is.
func TestToolErrorIsBounded(t *testing.T) {
	long := strings.Repeat("é", maxToolErrorBytes)
	got := toolErrorOf(Evidence{Final: &pluginv1.Result{Error: &pluginv1.ToolError{Message: "x" + long, Stack: long}}})
	if len(got.Message) > maxToolErrorBytes+3 || len(got.Stack) > maxToolErrorBytes+3 || !utf8.ValidString(got.Message+got.Stack) {
		t.Errorf("%d and %d bytes", len(got.Message), len(got.Stack))
	}
}

func TestEveryStatusHasACode(t *testing.T) {
	want := map[api.Status]int{
		api.StatusOK: 0, api.StatusCancelled: 1, api.StatusToolError: 2, api.StatusInvalidArgs: 3, api.StatusTimeout: 4,
		api.StatusDenied: 7, api.StatusPolicyViolation: 7, api.StatusOOM: 8, api.StatusPidsLimit: 8, api.StatusOutputLimit: 8,
		api.StatusCPULimit: 8, api.StatusNetworkLimit: 8, api.StatusLost: 2, api.StatusStartFailed: 9, api.StatusCollateral: 10, api.StatusCrashed: 13, api.StatusNoResult: 13,
		api.StatusProtocolError: 13, api.StatusUnkillable: 13, api.StatusOverloaded: 14,
	}
	for status, code := range want {
		if got := int(Code(status)); got != code {
			t.Errorf("%s: code %d, want %d", status, got, code)
		}
		if CodeName(status) == "" {
			t.Errorf("%s: its code has no name", status)
		}
	}
	if len(want) != len(grpcCodes) {
		t.Errorf("%d statuses have codes, want %d", len(grpcCodes), len(want))
	}
}

// A call that its owner's quota keeps out is not one for which the host has no slot.
func TestReasonOfAnOverload(t *testing.T) {
	for quota, want := range map[bool]api.Reason{true: api.ReasonQuota, false: api.ReasonAdmission} {
		if got := startOutcome(&admission.OverloadedError{Reason: "x", Quota: quota}); got.status != api.StatusOverloaded || got.reason != want {
			t.Errorf("%s, %s, want %s", got.status, got.reason, want)
		}
	}
}

// What a tool calls a signal is a short name, whatever it is.
func TestTheSignalThatAToolNamesIsShort(t *testing.T) {
	for said, want := range map[string]string{
		"SIGSEGV": "SIGSEGV", "SIGRTMAX-14": "SIGRTMAX-14", "\nSIGHUP\nand more": "SIGHUP", " \n": "an unknown signal",
		strings.Repeat("S", 1<<20): strings.Repeat("S", maxSignalBytes) + "…",
	} {
		r := outcomeFor(Evidence{Final: &pluginv1.Result{Exit: &pluginv1.CommandExit{Signal: said}}, Ran: true})
		if r.Exit.Signal != want || r.ToolError.Message != "the command died of "+want {
			t.Errorf("%.40q: %.80q, %.80q, want %q", said, r.Exit.Signal, r.ToolError.Message, want)
		}
	}
}
