package supervisor

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// began are all causes, with a reason that each can have.
var began = map[cause]struct {
	reason api.Reason
	want   string
}{
	causeDeadline:    {budget.ReasonDeadline, "was stopped after 2s, its limit"},
	causeTotal:       {budget.ReasonTotal, "was stopped after 2s because the time of its stream was over (its whole limit is 2s)"},
	causeIdle:        {budget.ReasonIdle, "was stopped after 2s because it had sent nothing for 0.5s (its whole limit is 2s)"},
	causeAbort:       {api.ReasonParent, "was aborted after 2s (parent)"},
	causeOOM:         {"memory", "ran out of memory after 2s: its limit is 1048576 bytes for all its processes"},
	causeCPU:         {"cpuTime", "was stopped after 2s: it had used up its CPU time limit of 1s"},
	causeOutputTotal: {api.ReasonOutputTotal, "was stopped after 2s: it had written more than its limit of 4096 bytes"},
	causeProtocol:    {"too many questions at once", "broke the protocol after 2s: too many questions at once"},
	causeCollateral:  {"collateral", "was killed after 2s together with another call that its process was serving"},
}

// outcomeFor is the result of a call that comes to e.
func outcomeFor(e evidence) *api.Result {
	c := (&Supervisor{}).newCall(Request{Name: "t"})
	c.resolution.Max = time.Hour
	r := &api.Result{Tool: "t", Kill: api.Kill{Cause: string(e.cause), Survivors: e.survivors, Reaped: 1, Stage: "kill"}}
	r.Timing.StartMs, r.Timing.RunMs, r.Timing.TimeoutMs = 50, 1950, new(int64(2000))
	c.silence = 500 * time.Millisecond
	r.Limits = api.AppliedLimits{MemoryBytes: 1 << 20, Pids: 10, CPUTimeMs: 1000, OutputTotalBytes: 4096}
	c.fillOutcome(r, e)
	return r
}

// A result that comes after something had begun to end its call counts, and
// people and models are told what that was; only the soft budget makes it one
// that overran.
func TestASuccessNamesWhatHadBegunToEndIt(t *testing.T) {
	for why, is := range began {
		r := outcomeFor(evidence{cause: why, reason: is.reason, final: &pluginv1.Result{}, ran: true})
		want := `[NOTE] Tool "t" ` + is.want + ". Its result came all the same, and is complete."
		if r.Status != api.StatusOK || r.Reason != "" || r.Overran || r.Message != want || r.Retry.Hint != "" {
			t.Errorf("%s: %s (%s), overran %v, hint %q: %q, want %q", why, r.Status, r.Reason, r.Overran, r.Retry.Hint, r.Message, want)
		}
		if failed := outcomeFor(evidence{cause: why, reason: is.reason, ran: true}); failed.OK() || failed.Overran || !strings.Contains(failed.Message, is.want) {
			t.Errorf("%s: %s, overran %v: %q, want %q in it", why, failed.Status, failed.Overran, failed.Message, is.want)
		}
	}
	if r := outcomeFor(evidence{final: &pluginv1.Result{}, ran: true}); r.Message != "" || r.Overran {
		t.Errorf("a plain success: overran %v, %q", r.Overran, r.Message)
	}
	if len(began) != 9 {
		t.Errorf("%d causes are looked at", len(began))
	}
}

// The host's own failures are not laid at the tool's door, and every reason has a
// remedy of its own.
func TestRemediesOfFailedStarts(t *testing.T) {
	hosts := map[api.Reason]bool{api.ReasonHost: true, api.ReasonSandbox: true, api.ReasonAdapter: true}
	for reason := range startHints {
		r := outcomeFor(evidence{startErr: refuse(api.StatusStartFailed, reason, errors.New("why"))})
		blames := strings.Contains(r.Retry.Hint, "tool's") || strings.Contains(r.Retry.Hint, "name of the tool")
		if r.Retry.Hint == "" || !strings.HasSuffix(r.Message, "Next: "+r.Retry.Hint+".") || hosts[reason] && blames {
			t.Errorf("%s: %q", reason, r.Message)
		}
		if hosts[reason] && !strings.Contains(r.Retry.Hint, "leave the tool as it is") {
			t.Errorf("%s: %q", reason, r.Retry.Hint)
		}
		t.Logf("%s: %s", reason, r.Message)
	}
	closed := outcomeFor(evidence{startErr: hostFailure(errors.New("cannot clone: too many open files"))})
	if closed.Reason != api.ReasonHost || !closed.Retry.Retryable {
		t.Errorf("%s, retry %+v", closed.Reason, closed.Retry)
	}
}

// That a tool has ended before its handshake is told as its fault only where
// nothing else had ended it, and how it did is told with it.
func TestAToolThatEndsBeforeItsHandshake(t *testing.T) {
	ended := &host.HandshakeError{Reason: "not a toolhost tool: it ended its output", Ended: true}
	other := &host.HandshakeError{Reason: "not a toolhost tool: its first line is not a handshake"}
	for name, test := range map[string]struct {
		e    evidence
		want string // the tool's error; empty for none
	}{
		"by itself":               {evidence{startErr: ended, exited: true}, ended.Reason},
		"with a status":           {evidence{startErr: ended, exited: true, exit: 3 << 8}, ended.Reason + "; it exited with status 3"},
		"of a signal":             {evidence{startErr: ended, exited: true, exit: syscall.WaitStatus(syscall.SIGSEGV)}, "it died of SIGSEGV before its handshake: see what it has said on stderr"},
		"by our clean-up":         {evidence{startErr: ended, exited: true, exitOurs: true, exit: syscall.WaitStatus(syscall.SIGKILL)}, ended.Reason},
		"by our SIGTERM":          {evidence{startErr: ended, cause: causeAbort, exited: true, exit: syscall.WaitStatus(syscall.SIGTERM)}, ""},
		"at the deadline":         {evidence{startErr: ended, cause: causeDeadline}, ""},
		"out of memory":           {evidence{startErr: ended, cause: causeOOM}, ""},
		"answered as it ended":    {evidence{startErr: errEndedStarting, cause: causeDeadline}, ""},
		"is none, and is aborted": {evidence{startErr: other, cause: causeAbort}, other.Reason},
	} {
		r := outcomeFor(test.e)
		got := ""
		if r.ToolError != nil {
			got = r.ToolError.Message
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		t.Logf("%s: %s", name, r.Message)
	}
}

// A host that was stopped, or starved, says for how long a call really ran.
func TestLateStopsAreToldAsTheyWere(t *testing.T) {
	for _, test := range []struct {
		reason         api.Reason
		ran, human     int64
		timeout        *int64
		want, notFound string
	}{
		{budget.ReasonDeadline, 2004, 0, new(int64(2000)), "was stopped after 2s, its limit.", "2.004"},
		{budget.ReasonDeadline, 3600, 0, new(int64(2000)), "was stopped after 3.6s, later than its limit of 2s since the host was held up.", ", its limit"},
		{budget.ReasonDeadline, 3600, 1600, new(int64(2000)), "was stopped after 2s, its limit.", "3.6"},
		{budget.ReasonTotal, 3600, 0, new(int64(30_000)), "was stopped after 3.6s because the time of its stream was over (its whole limit is 30s).", "limit of its stream"},
		{budget.ReasonTotal, 3600, 0, nil, "was stopped after 3.6s because the time of its stream was over.", "limit"},
		{budget.ReasonIdle, 3600, 0, nil, "was stopped after 3.6s because it had sent nothing for 0.5s.", "limit"},
	} {
		r := &api.Result{Tool: "t", Status: api.StatusTimeout, Reason: test.reason}
		r.Timing = api.Timing{RunMs: test.ran, HumanWaitMs: test.human, TimeoutMs: test.timeout, SilenceLimitMs: 500}
		if got := message(r, outcome{}, time.Hour); !strings.Contains(got, test.want) || strings.Contains(got, test.notFound) {
			t.Errorf("%q, want %q in it and %q not", got, test.want, test.notFound)
		}
	}
}

// No combination of what can happen makes a message that says nothing, or that
// something has a limit of nothing.
func TestNoMessageIsEmptyOfMeaning(t *testing.T) {
	ends := map[string]evidence{
		"nothing": {}, "success": {final: &pluginv1.Result{}}, "error": {final: &pluginv1.Result{Error: &pluginv1.ToolError{Message: "no luck"}}},
		"exit": {exited: true, exit: 1 << 8}, "signal": {exited: true, exit: syscall.WaitStatus(syscall.SIGSEGV)},
		"seccomp": {exited: true, exit: syscall.WaitStatus(syscall.SIGSYS)}, "disconnected": {streamErr: host.ErrDisconnected},
		"start": {startErr: errors.New("why")}, "total": {overTotal: true}, "survivor": {survivors: 1},
		"hash": {startErr: refuse(api.StatusPolicyViolation, api.ReasonSHA256, errors.New("wrong hash"))},
	}
	began := began
	causes := []cause{causeNone}
	for why := range began {
		causes = append(causes, why)
	}
	for name, e := range ends {
		for _, why := range causes {
			e.cause, e.reason, e.ran = why, began[why].reason, e.startErr == nil
			r := outcomeFor(e)
			for _, empty := range []string{"()", ": .", "  ", "limit is 0", "limit of 0", "none", "<nil>", string(api.StatusPolicyViolation)} {
				if strings.Contains(r.Message, empty) {
					t.Errorf("%s, %q: %q has %q", name, why, r.Message, empty)
				}
			}
			if !r.OK() && r.Message == "" || strings.HasPrefix(r.Message, "[NOTE]") != (r.OK() && why != causeNone) {
				t.Errorf("%s, %q: %s with %q", name, why, r.Status, r.Message)
			}
			t.Logf("%-12s %-11s %s", name, why, r.Message)
		}
	}
}
