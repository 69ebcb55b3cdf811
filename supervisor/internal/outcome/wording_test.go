package outcome

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// began are all causes, with a reason that each can have.
var began = map[Cause]struct {
	reason api.Reason
	want   string
}{
	CauseDeadline:    {budget.ReasonDeadline, "was stopped after 2s, its limit"},
	CauseTotal:       {budget.ReasonTotal, "was stopped after 2s because the time of its stream was over (its whole limit is 2s)"},
	CauseIdle:        {budget.ReasonIdle, "was stopped after 2s because it had sent nothing for 0.5s (its whole limit is 2s)"},
	CauseAbort:       {api.ReasonParent, "was aborted after 2s (parent)"},
	CauseOOM:         {"memory", "ran out of memory after 2s: its limit is 1048576 bytes for all its processes"},
	CauseCPU:         {"cpuTime", "was stopped after 2s: it had used up its CPU time limit of 1s"},
	CauseOutputTotal: {api.ReasonOutputTotal, "was stopped after 2s: it had written more than its limit of 4096 bytes"},
	CauseProtocol:    {"too many questions at once", "broke the protocol after 2s: too many questions at once"},
	CauseCollateral:  {"collateral", "was killed after 2s together with another call that its process was serving"},
}

// outcomeFor is the result of a call that comes to e.
func outcomeFor(e Evidence) *api.Result {
	r := &api.Result{Tool: "t", Kill: api.Kill{Cause: string(e.Cause), Survivors: e.Survivors, Reaped: 1, Stage: "kill"}}
	r.Timing.StartMs, r.Timing.RunMs, r.Timing.TimeoutMs = 50, 1950, new(int64(2000))
	r.Limits = api.AppliedLimits{MemoryBytes: 1 << 20, Pids: 10, CPUTimeMs: 1000, OutputTotalBytes: 4096}
	return worded(r, e, Terms{Max: time.Hour, Silence: 500 * time.Millisecond})
}

func worded(r *api.Result, e Evidence, t Terms) *api.Result {
	e.Judge(r, t)
	e.Word(r, t)
	return r
}

// refuse is the evidence of a call that never began.
func refuse(status api.Status, reason api.Reason) Evidence {
	return Evidence{StartErr: &Refusal{Status: status, Reason: reason, Err: errors.New("why")}}
}

// A result that comes after something had begun to end its call counts, and
// people and models are told what that was; only the soft budget makes it one
// that overran.
func TestASuccessNamesWhatHadBegunToEndIt(t *testing.T) {
	for why, is := range began {
		r := outcomeFor(Evidence{Cause: why, Reason: is.reason, Final: &pluginv1.Result{}, Ran: true})
		want := `[NOTE] Tool "t" ` + is.want + ". Its result came all the same, and is complete."
		if r.Status != api.StatusOK || r.Reason != "" || r.Overran || r.Message != want || r.Retry.Hint != "" {
			t.Errorf("%s: %s (%s), overran %v, hint %q: %q, want %q", why, r.Status, r.Reason, r.Overran, r.Retry.Hint, r.Message, want)
		}
		if failed := outcomeFor(Evidence{Cause: why, Reason: is.reason, Ran: true}); failed.OK() || failed.Overran || !strings.Contains(failed.Message, is.want) {
			t.Errorf("%s: %s, overran %v: %q, want %q in it", why, failed.Status, failed.Overran, failed.Message, is.want)
		}
	}
	if r := outcomeFor(Evidence{Final: &pluginv1.Result{}, Ran: true}); r.Message != "" || r.Overran {
		t.Errorf("a plain success: overran %v, %q", r.Overran, r.Message)
	}
	if len(began) != 9 {
		t.Errorf("%d causes are looked at", len(began))
	}
}

// A command that could not fork ends as it likes, and its own error seldom names the limit.
func TestAFailureAtThePidsLimitIsHintedAt(t *testing.T) {
	for _, hits := range []int64{0, 2} {
		for _, e := range []Evidence{{Final: &pluginv1.Result{Error: &pluginv1.ToolError{Message: "cannot fork"}}, Ran: true}, {Final: &pluginv1.Result{}, Ran: true}} {
			e.Usage.PidsLimitHits = hits
			r := outcomeFor(e)
			if hinted := strings.Contains(r.Retry.Hint, "pids limit"); hinted != (hits > 0 && !r.OK()) {
				t.Errorf("%s, %d hits: %q", r.Status, hits, r.Retry.Hint)
			}
		}
	}
}

// The host's own failures are not laid at the tool's door, and every reason has a
// remedy of its own.
func TestRemediesOfFailedStarts(t *testing.T) {
	hosts := map[api.Reason]bool{api.ReasonHost: true, api.ReasonSandbox: true, api.ReasonAdapter: true}
	for reason := range startHints {
		r := outcomeFor(refuse(api.StatusStartFailed, reason))
		blames := strings.Contains(r.Retry.Hint, "tool's") || strings.Contains(r.Retry.Hint, "name of the tool")
		if r.Retry.Hint == "" || !strings.HasSuffix(r.Message, "Next: "+r.Retry.Hint+".") || hosts[reason] && blames {
			t.Errorf("%s: %q", reason, r.Message)
		}
		if hosts[reason] && !strings.Contains(r.Retry.Hint, "leave the tool as it is") {
			t.Errorf("%s: %q", reason, r.Retry.Hint)
		}
		t.Logf("%s: %s", reason, r.Message)
	}
}

// That a tool has ended before its handshake is told as its fault only where
// nothing else had ended it, and how it did is told with it.
func TestAToolThatEndsBeforeItsHandshake(t *testing.T) {
	ended := &host.HandshakeError{Reason: "not a toolhost tool: it ended its output", Ended: true}
	other := &host.HandshakeError{Reason: "not a toolhost tool: its first line is not a handshake"}
	for name, test := range map[string]struct {
		e    Evidence
		want string // the tool's error; empty for none
	}{
		"by itself":               {Evidence{StartErr: ended, Exited: true}, ended.Reason},
		"with a status":           {Evidence{StartErr: ended, Exited: true, Exit: 3 << 8}, ended.Reason + "; it exited with status 3"},
		"of a signal":             {Evidence{StartErr: ended, Exited: true, Exit: syscall.WaitStatus(syscall.SIGSEGV)}, "it died of SIGSEGV before its handshake: see what it has said on stderr"},
		"by our clean-up":         {Evidence{StartErr: ended, Exited: true, ExitOurs: true, Exit: syscall.WaitStatus(syscall.SIGKILL)}, ended.Reason},
		"by our SIGTERM":          {Evidence{StartErr: ended, Cause: CauseAbort, Exited: true, Exit: syscall.WaitStatus(syscall.SIGTERM)}, ""},
		"at the deadline":         {Evidence{StartErr: ended, Cause: CauseDeadline}, ""},
		"out of memory":           {Evidence{StartErr: ended, Cause: CauseOOM}, ""},
		"answered as it ended":    {Evidence{StartErr: ErrEndedStarting, Cause: CauseDeadline}, ""},
		"is none, and is aborted": {Evidence{StartErr: other, Cause: CauseAbort}, other.Reason},
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
		if got := message(r, outcome{}, time.Hour, false); !strings.Contains(got, test.want) || strings.Contains(got, test.notFound) {
			t.Errorf("%q, want %q in it and %q not", got, test.want, test.notFound)
		}
	}
}

// No combination of what can happen makes a message that says nothing, or that
// something has a limit of nothing.
func TestNoMessageIsEmptyOfMeaning(t *testing.T) {
	ends := map[string]Evidence{
		"nothing": {}, "success": {Final: &pluginv1.Result{}}, "error": {Final: &pluginv1.Result{Error: &pluginv1.ToolError{Message: "no luck"}}},
		"no words": {Final: &pluginv1.Result{Error: &pluginv1.ToolError{}}}, "blank line": {Final: &pluginv1.Result{Error: &pluginv1.ToolError{Message: "\n\nno luck"}}},
		"exit": {Exited: true, Exit: 1 << 8}, "signal": {Exited: true, Exit: syscall.WaitStatus(syscall.SIGSEGV)},
		"seccomp": {Exited: true, Exit: syscall.WaitStatus(syscall.SIGSYS)}, "disconnected": {StreamErr: host.ErrDisconnected},
		"start": {StartErr: errors.New("why")}, "total": {OverTotal: true}, "network": {OverNetwork: "sent"}, "survivor": {Survivors: 1},
		"hash": refuse(api.StatusPolicyViolation, api.ReasonSHA256),
	}
	began := began
	causes := []Cause{CauseNone}
	for why := range began {
		causes = append(causes, why)
	}
	for name, e := range ends {
		for _, why := range causes {
			e.Cause, e.Reason, e.Ran = why, began[why].reason, e.StartErr == nil
			r := outcomeFor(e)
			for _, empty := range []string{"()", ": .", "  ", "limit is 0", "limit of 0", "none", "<nil>", string(api.StatusPolicyViolation)} {
				if strings.Contains(r.Message, empty) {
					t.Errorf("%s, %q: %q has %q", name, why, r.Message, empty)
				}
			}
			if !r.OK() && r.Message == "" || strings.HasPrefix(r.Message, "[NOTE]") != (r.OK() && why != CauseNone) {
				t.Errorf("%s, %q: %s with %q", name, why, r.Status, r.Message)
			}
			t.Logf("%-12s %-11s %s", name, why, r.Message)
		}
	}
}
