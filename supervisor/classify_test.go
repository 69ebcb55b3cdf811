package supervisor

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
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
		want api.Status
	}{
		{"success", evidence{final: success}, api.StatusOK},
		{"success during grace", evidence{final: success, cause: causeDeadline}, api.StatusOK},
		{"success after an OOM kill of a grandchild", evidence{final: success, usage: oom}, api.StatusOK},
		{"success with survivors", evidence{final: success, survivors: 1}, api.StatusUnkillable},
		{"error", evidence{final: failure}, api.StatusToolError},
		{"error after the deadline", evidence{final: failure, cause: causeDeadline}, api.StatusTimeout},
		{"cancelled after an abort", evidence{final: cancelled, cause: causeAbort}, api.StatusCancelled},
		{"non-zero exit", evidence{final: exit3}, api.StatusToolError},
		{"non-zero exit after the deadline", evidence{final: exit3, cause: causeDeadline}, api.StatusTimeout},
		{"non-zero exit after an OOM kill", evidence{final: exit3, usage: oom}, api.StatusOOM},
		{"command died of a signal", evidence{final: segv}, api.StatusCrashed},
		{"command not found", evidence{final: missing}, api.StatusStartFailed},
		{"undecodable arguments", evidence{final: badArgs}, api.StatusInvalidArgs},
		{"idle", evidence{cause: causeIdle, exited: true, exit: killed}, api.StatusTimeout},
		{"stream total", evidence{cause: causeTotal}, api.StatusTimeout},
		{"OOM event", evidence{cause: causeOOM}, api.StatusOOM},
		{"OOM found afterwards", evidence{exited: true, exit: killed, usage: oom}, api.StatusOOM},
		{"OOM of the host's total", evidence{exited: true, exit: killed, usage: outerOOM}, api.StatusOOM},
		{"non-zero exit after an OOM of the host's total", evidence{final: exit3, usage: outerOOM}, api.StatusOOM},
		{"success after an OOM of the host's total", evidence{final: success, usage: outerOOM}, api.StatusOK},
		{"OOM while starting", evidence{startErr: errors.New("x"), usage: oom}, api.StatusOOM},
		{"OOM after the deadline", evidence{cause: causeDeadline, usage: oom}, api.StatusTimeout},
		{"CPU time", evidence{cause: causeCPU}, api.StatusCPULimit},
		{"output", evidence{cause: causeOutputTotal}, api.StatusOutputLimit},
		{"start failed", evidence{startErr: errors.New("x")}, api.StatusStartFailed},
		{"deadline while starting", evidence{startErr: errors.New("x"), cause: causeDeadline}, api.StatusTimeout},
		{"refused arguments", evidence{startErr: refuse(api.StatusInvalidArgs, "schema", errors.New("x"))}, api.StatusInvalidArgs},
		{"second result", evidence{final: success, streamErr: broken}, api.StatusProtocolError},
		{"broken stream after the deadline", evidence{streamErr: broken, cause: causeDeadline}, api.StatusTimeout},
		{"closed connection", evidence{streamErr: host.ErrDisconnected}, api.StatusProtocolError},
		{"no result", evidence{exited: true, exit: exit0, streamErr: host.ErrDisconnected}, api.StatusNoResult},
		{"exit before a result", evidence{exited: true, exit: exit1}, api.StatusCrashed},
		{"signal", evidence{exited: true, exit: killed}, api.StatusCrashed},
		{"seccomp", evidence{exited: true, exit: sigsys}, api.StatusPolicyViolation},
		{"pids limit", evidence{exited: true, exit: exit1, usage: pids}, api.StatusPidsLimit},
		{"pids limit while starting", evidence{startErr: errors.New("x"), exited: true, exit: exit1, usage: pids}, api.StatusPidsLimit},
		{"pids limit of what is behind a refusal", evidence{startErr: refuse(api.StatusInvalidArgs, "schema", errors.New("x")), usage: pids}, api.StatusInvalidArgs},
		{"pids limit, and lives on", evidence{streamErr: host.ErrDisconnected, usage: pids}, api.StatusPidsLimit},
		{"command died of the filter", evidence{final: &pluginv1.Result{Exit: &pluginv1.CommandExit{Signal: "SIGSYS"}}}, api.StatusPolicyViolation},
		{"an error and too much output", evidence{final: failure, overTotal: true}, api.StatusOutputLimit},
		{"a success and too much output", evidence{final: success, overTotal: true}, api.StatusOK},
		{"a death and too much output", evidence{exited: true, exit: exit1, overTotal: true}, api.StatusOutputLimit},
		{"pids limit with a result is evidence only", evidence{final: failure, usage: pids}, api.StatusToolError},
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
		want api.Reason
	}{
		{errors.New("no handshake"), "start"},
		{hostFailure(errors.New("no cgroup can be made")), "host"},
		{hostFailure(refuse(api.StatusStartFailed, api.ReasonNotExecutable, errors.New("x"))), "not_executable"},
	} {
		if got := classify(evidence{startErr: test.err}); got.status != api.StatusStartFailed || got.reason != test.want {
			t.Errorf("%v: %+v, want reason %s", test.err, got, test.want)
		}
	}
}

func TestEveryStatusHasACode(t *testing.T) {
	want := map[api.Status]int{
		api.StatusOK: 0, api.StatusCancelled: 1, api.StatusToolError: 2, api.StatusInvalidArgs: 3, api.StatusTimeout: 4,
		api.StatusDenied: 7, api.StatusPolicyViolation: 7, api.StatusOOM: 8, api.StatusPidsLimit: 8, api.StatusOutputLimit: 8,
		api.StatusCPULimit: 8, api.StatusStartFailed: 9, api.StatusCollateral: 10, api.StatusCrashed: 13, api.StatusNoResult: 13,
		api.StatusProtocolError: 13, api.StatusUnkillable: 13, api.StatusOverloaded: 14,
	}
	for status, code := range want {
		if got := int(GRPC(status)); got != code {
			t.Errorf("%s: code %d, want %d", status, got, code)
		}
		if codeNames[GRPC(status)] == "" {
			t.Errorf("%s: its code has no name", status)
		}
	}
	if len(want) != len(grpcCodes) {
		t.Errorf("%d statuses have codes, want %d", len(grpcCodes), len(want))
	}
}
