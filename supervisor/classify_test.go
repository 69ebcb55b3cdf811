package supervisor

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

func TestClassify(t *testing.T) {
	var (
		success   = &pluginv1.Result{}
		failure   = &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_ERROR}}
		cancelled = &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_CANCELLED}}
		badArgs   = &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_INVALID_ARGUMENTS}}
		missing   = &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_COMMAND_NOT_FOUND}}
		exit3     = &pluginv1.Result{Exit: &pluginv1.CommandExit{Code: 3}}
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
		e    evidence
		want Status
	}{
		{"success", evidence{final: success}, StatusOK},
		{"success during grace", evidence{final: success, cause: causeDeadline}, StatusOK},
		{"success after an OOM kill of a grandchild", evidence{final: success, usage: oom}, StatusOK},
		{"success with survivors", evidence{final: success, survivors: 1}, StatusUnkillable},
		{"error", evidence{final: failure}, StatusToolError},
		{"error after the deadline", evidence{final: failure, cause: causeDeadline}, StatusTimeout},
		{"cancelled after an abort", evidence{final: cancelled, cause: causeAbort}, StatusCancelled},
		{"non-zero exit", evidence{final: exit3}, StatusToolError},
		{"non-zero exit after the deadline", evidence{final: exit3, cause: causeDeadline}, StatusTimeout},
		{"non-zero exit after an OOM kill", evidence{final: exit3, usage: oom}, StatusOOM},
		{"command died of a signal", evidence{final: segv}, StatusCrashed},
		{"command not found", evidence{final: missing}, StatusStartFailed},
		{"undecodable arguments", evidence{final: badArgs}, StatusInvalidArgs},
		{"idle", evidence{cause: causeIdle, exited: true, exit: killed}, StatusTimeout},
		{"stream total", evidence{cause: causeTotal}, StatusTimeout},
		{"OOM event", evidence{cause: causeOOM}, StatusOOM},
		{"OOM found afterwards", evidence{exited: true, exit: killed, usage: oom}, StatusOOM},
		{"OOM of the host's total", evidence{exited: true, exit: killed, usage: outerOOM}, StatusOOM},
		{"non-zero exit after an OOM of the host's total", evidence{final: exit3, usage: outerOOM}, StatusOOM},
		{"success after an OOM of the host's total", evidence{final: success, usage: outerOOM}, StatusOK},
		{"OOM while starting", evidence{startErr: errors.New("x"), usage: oom}, StatusOOM},
		{"OOM after the deadline", evidence{cause: causeDeadline, usage: oom}, StatusTimeout},
		{"CPU time", evidence{cause: causeCPU}, StatusCPULimit},
		{"output", evidence{cause: causeOutputTotal}, StatusOutputLimit},
		{"start failed", evidence{startErr: errors.New("x")}, StatusStartFailed},
		{"deadline while starting", evidence{startErr: errors.New("x"), cause: causeDeadline}, StatusTimeout},
		{"refused arguments", evidence{startErr: refuse(StatusInvalidArgs, "schema", errors.New("x"))}, StatusInvalidArgs},
		{"second result", evidence{final: success, streamErr: broken}, StatusProtocolError},
		{"broken stream after the deadline", evidence{streamErr: broken, cause: causeDeadline}, StatusTimeout},
		{"closed connection", evidence{streamErr: host.ErrDisconnected}, StatusProtocolError},
		{"no result", evidence{exited: true, exit: exit0, streamErr: host.ErrDisconnected}, StatusNoResult},
		{"exit before a result", evidence{exited: true, exit: exit1}, StatusCrashed},
		{"signal", evidence{exited: true, exit: killed}, StatusCrashed},
		{"seccomp", evidence{exited: true, exit: sigsys}, StatusPolicyViolation},
		{"pids limit", evidence{exited: true, exit: exit1, usage: pids}, StatusPidsLimit},
		{"pids limit while starting", evidence{startErr: errors.New("x"), exited: true, exit: exit1, usage: pids}, StatusPidsLimit},
		{"pids limit of what is behind a refusal", evidence{startErr: refuse(StatusInvalidArgs, "schema", errors.New("x")), usage: pids}, StatusInvalidArgs},
		{"pids limit, and lives on", evidence{streamErr: host.ErrDisconnected, usage: pids}, StatusPidsLimit},
		{"command died of the filter", evidence{final: &pluginv1.Result{Exit: &pluginv1.CommandExit{Signal: "SIGSYS"}}}, StatusPolicyViolation},
		{"an error and too much output", evidence{final: failure, overTotal: true}, StatusOutputLimit},
		{"a success and too much output", evidence{final: success, overTotal: true}, StatusOK},
		{"a death and too much output", evidence{exited: true, exit: exit1, overTotal: true}, StatusOutputLimit},
		{"pids limit with a result is evidence only", evidence{final: failure, usage: pids}, StatusToolError},
	} {
		if got := classify(test.e); got.status != test.want {
			t.Errorf("%s: %s, want %s", test.name, got.status, test.want)
		}
	}
}

// What a tool says of its failure is bounded, as its output is.
func TestToolErrorIsBounded(t *testing.T) {
	long := strings.Repeat("é", maxToolErrorBytes)
	got := toolErrorOf(evidence{final: &pluginv1.Result{Error: &pluginv1.ToolError{Message: "x" + long, Stack: long}}})
	if len(got.Message) > maxToolErrorBytes+3 || len(got.Stack) > maxToolErrorBytes+3 || !utf8.ValidString(got.Message+got.Stack) {
		t.Errorf("%d and %d bytes", len(got.Message), len(got.Stack))
	}
}

func TestAFailureOfTheHostIsItsOwn(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("no handshake"), "start"},
		{hostFailure(errors.New("no cgroup can be made")), "host"},
		{hostFailure(refuse(StatusStartFailed, reasonNotExecutable, errors.New("x"))), "not_executable"},
	} {
		if got := classify(evidence{startErr: test.err}); got.status != StatusStartFailed || got.reason != test.want {
			t.Errorf("%v: %+v, want reason %s", test.err, got, test.want)
		}
	}
}

func TestEveryStatusHasACode(t *testing.T) {
	want := map[Status]int{
		StatusOK: 0, StatusCancelled: 1, StatusToolError: 2, StatusInvalidArgs: 3, StatusTimeout: 4,
		StatusDenied: 7, StatusPolicyViolation: 7, StatusOOM: 8, StatusPidsLimit: 8, StatusOutputLimit: 8,
		StatusCPULimit: 8, StatusStartFailed: 9, StatusCollateral: 10, StatusCrashed: 13, StatusNoResult: 13,
		StatusProtocolError: 13, StatusUnkillable: 13, StatusOverloaded: 14,
	}
	for status, code := range want {
		if got := int(status.GRPC()); got != code {
			t.Errorf("%s: code %d, want %d", status, got, code)
		}
		if codeNames[status.GRPC()] == "" {
			t.Errorf("%s: its code has no name", status)
		}
	}
	if len(want) != len(grpcCodes) {
		t.Errorf("%d statuses have codes, want %d", len(grpcCodes), len(want))
	}
}
