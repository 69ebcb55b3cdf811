package outcome

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/text"
)

var prefixes = map[api.Status]string{
	api.StatusTimeout: "[TIMEOUT]", api.StatusCancelled: "[CANCELLED]", api.StatusDenied: "[DENIED]", api.StatusOOM: "[OOM]",
	api.StatusPidsLimit: "[LIMIT]", api.StatusOutputLimit: "[LIMIT]", api.StatusCPULimit: "[LIMIT]",
	api.StatusNetworkLimit: "[LIMIT]", api.StatusLost: "[LOST]",
}

// causePrefix keeps the first cause's prefix for a call that is unkillable.
func causePrefix(r *api.Result) string {
	status := r.Status
	if status == api.StatusUnkillable {
		status = Cause(r.Kill.Cause).Status()
	}
	if p, ok := prefixes[status]; ok {
		return p
	}
	return "[FAILED]"
}

// message is the paragraph for the model. A success needs none, unless something
// had begun to end the call before. unseen: nothing has shown that the tool had begun.
func message(r *api.Result, began outcome, askable time.Duration, unseen bool) string {
	if r.Status == api.StatusOK && began.status == "" {
		return ""
	}
	if r.Status == api.StatusOK {
		return fmt.Sprintf("[NOTE] Tool %q %s. Its result came all the same, and is complete.", r.Tool, whatHappened(r, began))
	}
	parts := []string{causePrefix(r), fmt.Sprintf("Tool %q %s.", r.Tool, whatHappened(r, outcome{r.Status, r.Reason}))}
	for _, part := range []string{processesSentence(r), sideEffectsSentence(r, unseen), partialSentence(r), nextStep(r, askable)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// whatHappened is what came of the call, or had come of it before its result came.
func whatHappened(r *api.Result, o outcome) string {
	ran := Seconds(cmp.Or(r.Timing.StartMs+r.Timing.RunMs, r.Timing.QueueMs)) // until the kill ladder, if there was one
	switch o.status {
	case api.StatusTimeout:
		return timeoutPhrase(r, o.reason)
	case api.StatusCancelled:
		return fmt.Sprintf("was aborted after %s (%s)", ran, o.reason)
	case api.StatusOOM:
		switch o.reason {
		case api.ReasonShareMemory:
			return fmt.Sprintf("was killed after %s because all calls of its owner together had used up their quota of memory (access: quota: memory)", ran)
		case api.ReasonHostMemory:
			return fmt.Sprintf("was killed after %s because all calls together had used up the memory set aside for calls", ran)
		}
		return fmt.Sprintf("ran out of memory after %s: its limit is %d bytes for all its processes", ran, r.Limits.MemoryBytes)
	case api.StatusPidsLimit:
		return fmt.Sprintf("ended after %s without a result when it had reached its limit of %d processes and threads", ran, r.Limits.Pids)
	case api.StatusCPULimit:
		return fmt.Sprintf("was stopped after %s: it had used up its CPU time limit of %s", ran, Seconds(r.Limits.CPUTimeMs))
	case api.StatusOutputLimit:
		if r.Kill.Cause == "" {
			return fmt.Sprintf("ended after %s, and had written more than its limit of %d bytes", ran, r.Limits.OutputTotalBytes)
		}
		return fmt.Sprintf("was stopped after %s: it had written more than its limit of %d bytes", ran, r.Limits.OutputTotalBytes)
	case api.StatusNetworkLimit:
		if r.Kill.Cause == "" {
			return fmt.Sprintf("ended after %s, and its network had passed the limit %s", ran, o.reason)
		}
		return fmt.Sprintf("was stopped after %s: its network has passed the limit %s", ran, o.reason)
	case api.StatusCollateral:
		return fmt.Sprintf("was killed after %s together with another call that its process was serving", ran)
	case api.StatusUnkillable:
		return fmt.Sprintf("was sent SIGKILL, but %d of its processes could not be killed within %s (the kernel holds them)", r.Kill.Survivors, Seconds(r.Kill.LatencyUs/1000))
	case api.StatusCrashed:
		if o.reason == api.ReasonLauncher {
			return fmt.Sprintf("was ended after %s by something outside of toolhost, which killed its launcher and so all its processes", ran)
		}
		return fmt.Sprintf("crashed after %s without a result (%s)", ran, crashPhrase(r))
	case api.StatusNoResult:
		return fmt.Sprintf("exited after %s without giving a result", ran)
	}
	return failurePhrase(r, o, ran)
}

func failurePhrase(r *api.Result, o outcome, ran string) string {
	detail := cmp.Or(string(o.reason), string(o.status))
	if r.ToolError != nil && r.Kill.Cause != string(CauseProtocol) { // of which the tool has said nothing
		detail = cmp.Or(Shorten(text.FirstLine(r.ToolError.Message)), "it has not said why")
	}
	switch o.status {
	case api.StatusInvalidArgs:
		if r.Timing.RunMs > 0 || r.Retry.SideEffects != "none" {
			return "refused its arguments: " + detail
		}
		return "was not called: its arguments are invalid: " + detail
	case api.StatusStartFailed:
		return "could not be started: " + detail
	case api.StatusOverloaded:
		switch o.reason {
		case api.ReasonData, api.ReasonKeep, api.ReasonQuota:
			return "was not called: " + detail
		case api.ReasonMemory:
			return "was stopped after " + ran + " because the host is overloaded: " + detail
		}
		return "was not called because the host is overloaded: " + detail
	case api.StatusProtocolError:
		return "broke the protocol after " + ran + ": " + detail
	case api.StatusPolicyViolation:
		if o.reason == api.ReasonSeccomp {
			return "was killed after " + ran + " for a system call that its sandbox does not allow (SIGSYS)"
		}
		return "was not run: " + detail
	}
	return "failed after " + ran + ": " + detail
}

// lateMs is the delay up to which a late stop goes unmentioned: only a host that
// was itself stopped, or starved, takes longer.
const lateMs = 100

func timeoutPhrase(r *api.Result, reason api.Reason) string {
	ran := max(r.Timing.StartMs+r.Timing.RunMs-r.Timing.HumanWaitMs, 0)
	over := overPhrase(r, reason)
	if r.Timing.TimeoutMs == nil {
		return fmt.Sprintf("was stopped after %s because %s", Seconds(ran), over)
	}
	limit := Seconds(*r.Timing.TimeoutMs)
	switch {
	case reason == budget.ReasonIdle || reason == budget.ReasonTotal:
		return fmt.Sprintf("was stopped after %s because %s (its whole limit is %s)", Seconds(ran), over, limit)
	case ran > *r.Timing.TimeoutMs+lateMs:
		return fmt.Sprintf("was stopped after %s, later than its limit of %s since the host was held up", Seconds(ran), limit)
	}
	return fmt.Sprintf("was stopped after %s, its limit", limit)
}

// overPhrase is which of a call's times was over.
func overPhrase(r *api.Result, reason api.Reason) string {
	switch reason {
	case budget.ReasonIdle:
		return "it had sent nothing for " + Seconds(r.Timing.SilenceLimitMs)
	case budget.ReasonTotal:
		return "the time of its stream was over"
	}
	return "its time was over"
}

const lateHint = "give its start more time, or see why it is slow"

// lateMessage is that of a tool which was not ready in time to be called.
func lateMessage(r *api.Result) string {
	what := fmt.Sprintf("%s Tool %q was not ready in time: %s.", prefixes[api.StatusTimeout], r.Tool, Shorten(text.FirstLine(r.ToolError.Message)))
	return strings.Join([]string{what, processesSentence(r), sideEffectsSentence(r, false), "Next: " + lateHint + "."}, " ")
}

// crashPhrase is an adapter's word of how what it runs has ended, else the
// process's own end.
func crashPhrase(r *api.Result) string {
	if r.ToolError != nil {
		return cmp.Or(Shorten(text.FirstLine(r.ToolError.Message)), exitPhrase(r.Exit))
	}
	return exitPhrase(r.Exit)
}

func exitPhrase(e api.Exit) string {
	switch {
	case e.Signal != "":
		return e.Signal
	case e.Code != nil:
		return "exit status " + strconv.Itoa(*e.Code)
	}
	return "no exit status"
}

func processesSentence(r *api.Result) string {
	switch {
	case r.Kill.Survivors > 0:
		return fmt.Sprintf("%d of its processes are gone, %d survived.", r.Kill.Reaped, r.Kill.Survivors)
	case r.Kill.Cause == "":
		return ""
	case r.Kill.Reaped == 1 && r.Kill.Stage == "term":
		return "Its one process has ended, " + endedBy(r) + "."
	case r.Kill.Reaped > 1 && r.Kill.Stage == "term":
		return fmt.Sprintf("All %d of its processes have ended, %s.", r.Kill.Reaped, endedBy(r))
	case r.Kill.Reaped == 1:
		return "Its one process was killed."
	case r.Kill.Reaped > 1:
		return fmt.Sprintf("All %d of its processes were killed.", r.Kill.Reaped)
	}
	return "None of its processes is left."
}

// endedBy is what ended processes that were told to: the kernel may have been first.
func endedBy(r *api.Result) string {
	if r.Usage.OOMKills+r.Usage.AncestorOOMKills > 0 {
		return "by SIGTERM or for want of memory"
	}
	return "by SIGTERM"
}

func sideEffectsSentence(r *api.Result, unseen bool) string {
	switch {
	case r.Retry.SideEffects == "none":
		return "It has changed nothing."
	case unseen:
		return "It was still being started, and may not have begun at all: whether there are side effects is not known."
	}
	return "Side effects may have happened."
}

func partialSentence(r *api.Result) string {
	if !r.Partial {
		return ""
	}
	sizes := []string{}
	for _, s := range []struct {
		name  string
		bytes int64
	}{{"content", r.Output.Content.KeptBytes}, {"stdout", r.Output.Stdout.KeptBytes}} {
		if s.bytes > 0 {
			sizes = append(sizes, fmt.Sprintf("%d bytes of %s", s.bytes, s.name))
		}
	}
	return "Its partial output follows: " + strings.Join(sizes, " and ") + "."
}

func nextStep(r *api.Result, askable time.Duration) string {
	if r.Status == api.StatusTimeout && r.Retry.SuggestedTimeoutMs != nil && askable > 0 {
		return fmt.Sprintf("Next: ask for more time (up to %s) or take smaller steps.", budget.Format(wholeSeconds(askable)))
	}
	if r.Status == api.StatusTimeout && r.Reason != budget.ReasonIdle {
		return "Next: take smaller steps."
	}
	if hint := r.Retry.Hint; hint != "" {
		return "Next: " + hint + "."
	}
	return ""
}

// wholeSeconds leaves out what nobody would ask for.
func wholeSeconds(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d
	}
	return d.Truncate(time.Second)
}

// Seconds writes milliseconds as people do.
func Seconds(ms int64) string {
	return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) + "s"
}

// maxDetailRunes keeps a message one short paragraph, whatever a tool says.
const maxDetailRunes = 500

// Shorten bounds what a message quotes.
func Shorten(s string) string { return api.Cut(s, maxDetailRunes) }
