// Package outcome says what a call came to, by the evidence that its end has
// left: the status, the retry that can be advised, and the words for people and
// models. It knows nothing of processes, so that every end can be made up.
package outcome

import (
	"encoding/json"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Cause is what began a call's kill ladder, set once.
type Cause string

// Causes, by their names in a result.
const (
	CauseNone        Cause = ""
	CauseDeadline    Cause = "deadline"
	CauseTotal       Cause = "total"
	CauseIdle        Cause = "idle"
	CauseAbort       Cause = "abort"
	CauseOOM         Cause = "oom"
	CauseCPU         Cause = "cpu"
	CauseOutputTotal Cause = "outputTotal"
	CauseProtocol    Cause = "protocol"
	CauseCollateral  Cause = "collateral"
	CauseNetwork     Cause = "network"
)

// Status is the outcome that a cause leads to.
func (c Cause) Status() api.Status {
	switch c {
	case CauseDeadline, CauseTotal, CauseIdle:
		return api.StatusTimeout
	case CauseAbort:
		return api.StatusCancelled
	case CauseOOM:
		return api.StatusOOM
	case CauseCPU:
		return api.StatusCPULimit
	case CauseOutputTotal:
		return api.StatusOutputLimit
	case CauseProtocol:
		return api.StatusProtocolError
	case CauseNetwork:
		return api.StatusNetworkLimit
	case CauseCollateral:
		return api.StatusCollateral
	}
	return ""
}

// Evidence is all that the outcome of a call is decided by.
type Evidence struct {
	Cause     Cause
	Reason    api.Reason // within the cause
	Final     *pluginv1.Result
	StartErr  error
	StreamErr error
	Exited    bool
	Exit      syscall.WaitStatus
	// LauncherLost: the launcher was ended from outside, and the tool with it.
	LauncherLost bool
	ExitOurs     bool // the clean-up's, so that nothing is known of the tool's own
	Ran          bool // the tool's program has begun, or may have
	Unseen       bool // it may have, but nothing has shown that
	Survivors    int
	// ExitOK: the exit status is that of a success, as the tool itself said if it
	// was judged; OutputErr: the output is not what such a success has.
	ExitOK      bool
	ExitJudged  bool
	ExitMessage string
	OutputErr   error
	Structured  json.RawMessage // of a success
	OverTotal   bool            // more output than is allowed in all
	OverNetwork string          // the limit that its network has passed, if it has
	Usage       cgroup.Usage

	ours bool // the tool is toolhost's own, whose word on what it runs counts
}

// Terms are those of the call, on which the advice depends.
type Terms struct {
	// ReadOnly, Idempotent and Adapter are what the operator has said of the tool.
	ReadOnly, Idempotent, Adapter bool
	// Command: it runs a plain command.
	Command bool
	// Timeout is the one in force, Max the longest that a caller may ask for.
	Timeout, Max time.Duration
	// AsksTime: the tool has an argument by which a model can ask for more time.
	AsksTime bool
	// Silence is what an idle timeout allowed when it was over.
	Silence time.Duration
}

// longest is the longest timeout that the call can have.
func (t Terms) longest() time.Duration {
	if t.Timeout == budget.Infinite {
		return budget.Infinite
	}
	return t.Max
}

// askable is how much time a model can ask for.
func (t Terms) askable() time.Duration {
	if !t.AsksTime {
		return 0
	}
	return t.longest()
}

// Judge puts the judgement into a result that has all but that, and what follows
// from it but the words.
func (e Evidence) Judge(r *api.Result, t Terms) {
	e.ours = t.Adapter || t.Command
	o := classify(e)
	r.Status, r.Reason = o.status, o.reason
	r.Code = codeNames[e.code(o.status)]
	r.Partial = o.status != api.StatusOK && (len(r.Content) > 0 || r.Output.Stdout.SeenBytes > 0)
	r.ToolError = toolErrorOf(e)
	r.Exit = exitOf(e, t.Command)
	r.Usage = usageOf(e.Usage)
	r.Meta = e.Final.GetMeta()
	if e.Complete() && len(e.Structured) > 0 {
		r.Structured = e.Structured
	}
	if e.Cause == CauseIdle {
		r.Timing.SilenceLimitMs = t.Silence.Milliseconds()
	}
	e.advise(r, t)
}

// Word puts the paragraph for the model, and the details of a deadline, into a
// result that Judge has seen. What is to stay unsaid must be out of it by then.
func (e Evidence) Word(r *api.Result, t Terms) {
	r.Message = message(r, e.interrupted(), t.askable(), e.Unseen)
	r.Details = deadlineDetails(r)
}

func usageOf(u cgroup.Usage) api.Usage {
	return api.Usage{
		CPUUserMs: u.CPUUser.Milliseconds(), CPUSystemMs: u.CPUSystem.Milliseconds(),
		MemoryPeakBytes: u.MemoryPeakBytes, PidsPeak: u.PidsPeak,
		IOReadBytes: u.IOReadBytes, IOWriteBytes: u.IOWriteBytes,
		OOMEvents: u.OOMEvents, OOMKills: u.OOMKills, PidsLimitHits: u.PidsLimitHits,
		AncestorOOMKills: u.AncestorOOMKills, AncestorPidsLimitHits: u.AncestorPidsLimitHits,
	}
}
