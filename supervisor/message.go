package supervisor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/text"
)

// fillOutcome makes the judgement and everything that follows from it.
func (c *Call) fillOutcome(r *api.Result, e evidence) {
	o := classify(e)
	r.Status, r.Reason = o.status, o.reason
	r.Code = codeNames[grpcCode(o.status, e.cause)]
	r.Partial = o.status != api.StatusOK && (len(r.Content) > 0 || r.Output.Stdout.SeenBytes > 0)
	r.ToolError = toolErrorOf(e)
	r.Exit = exitOf(e, c.request.Command != nil)
	r.Usage = usageOf(e.usage)
	if e.final != nil && e.complete() && len(e.final.GetStructured()) > 0 {
		r.Structured = e.final.GetStructured()
	}
	if e.complete() && c.reader != nil {
		r.Structured = c.structured
	}
	if e.cause == causeIdle {
		r.Timing.SilenceLimitMs = c.silence.Milliseconds()
	}
	c.fillRetry(r, e)
	c.hintAtGrants(r)
	c.veil.result(r)
	r.Message = message(r, e.interrupted(), c.askable())
	r.Details = deadlineDetails(r)
}

// grpcCode of an unkillable call is that of what began its ladder.
func grpcCode(status api.Status, why cause) codes.Code {
	if status == api.StatusUnkillable && why != causeNone {
		return GRPC(why.status())
	}
	return GRPC(status)
}

// fillRetry gives advice: what never started, and what is confirmed to be
// harmless, can be called again.
func (c *Call) fillRetry(r *api.Result, e evidence) {
	tool := c.request.Tool
	r.Retry.SideEffects = "possible"
	if !e.began() || tool.ReadOnly {
		r.Retry.SideEffects = "none"
	}
	r.Retry.Retryable = mayComeOutOtherwise(r) && (!e.began() || tool.ReadOnly || tool.Idempotent)
	r.Retry.Hint = hintOf(r)
	switch {
	case r.Status == api.StatusTimeout && e.cause == causeDeadline:
		c.suggestTimeout(r)
		if r.Retry.SuggestedTimeoutMs != nil && c.askable() > 0 {
			r.Retry.Hint = "ask for more time or do less in one call"
		}
	case r.Status == api.StatusTimeout && e.cause == causeIdle:
		r.Retry.Hint = "take smaller steps, each of which says something"
	case r.Status == api.StatusTimeout: // more time is not what was wanting
		r.Retry.Hint = "take smaller steps"
	}
	if r.Status == api.StatusProtocolError && tool.Adapter {
		r.Retry.Hint = "tell who made the server"
	}
}

// mayComeOutOtherwise says that the same call is not bound to end the same way,
// nor against what somebody has decided.
func mayComeOutOtherwise(r *api.Result) bool {
	switch r.Status {
	case api.StatusOK, api.StatusInvalidArgs, api.StatusDenied, api.StatusPolicyViolation:
		return false
	case api.StatusCancelled:
		return r.Reason != api.ReasonUser && r.Reason != api.ReasonParent
	case api.StatusStartFailed:
		return !toBeCorrected[r.Reason]
	}
	return true
}

// toBeCorrected are the reasons for which a tool does not start until the call,
// its settings or its executable are others.
var toBeCorrected = map[api.Reason]bool{
	api.ReasonNotFound: true, api.ReasonNotExecutable: true, api.ReasonTool: true, api.ReasonCommand: true, api.ReasonDir: true,
	api.ReasonPolicy: true, api.ReasonLimits: true, api.ReasonKeep: true,
}

// suggestTimeout names four times the timeout, as far as a caller may ask.
func (c *Call) suggestTimeout(r *api.Result) {
	limit := c.maxTimeout()
	if c.resolution.Timeout >= limit {
		return
	}
	r.Retry.SuggestedTimeoutMs = new(min(4*c.resolution.Timeout, limit).Milliseconds())
}

// askable is how much time a model can ask for: none of a tool without an
// argument for it.
func (c *Call) askable() time.Duration {
	if c.description.GetTimeoutArgument() == "" {
		return 0
	}
	return c.maxTimeout()
}

// maxTimeout is the longest timeout that a call can have.
func (c *Call) maxTimeout() time.Duration {
	if c.resolution.Timeout == budget.Infinite {
		return budget.Infinite
	}
	return c.resolution.Max
}

var hints = map[api.Status]string{
	api.StatusTimeout:       "do less in one call",
	api.StatusOOM:           "do less in one call, or have the operator raise the memory limit",
	api.StatusPidsLimit:     "start fewer processes, or have the operator raise the pids limit",
	api.StatusCPULimit:      "do less in one call, or have the operator raise the CPU time limit",
	api.StatusOutputLimit:   "write less, or have the operator raise the output limit",
	api.StatusOverloaded:    "wait and call again",
	api.StatusCollateral:    "call again",
	api.StatusInvalidArgs:   "correct the arguments",
	api.StatusCrashed:       "look at the tool's stderr",
	api.StatusNoResult:      "look at the tool's stderr",
	api.StatusProtocolError: "rebuild the tool with a matching SDK",
}

// startHints are those of the reasons for which a tool has not started: only some
// of them are the tool's.
var startHints = map[api.Reason]string{
	api.ReasonStart:         "correct the tool's set-up",
	api.ReasonServer:        "correct the server's set-up",
	api.ReasonSlow:          lateHint,
	api.ReasonHost:          "leave the tool as it is and call again later; if it fails again, have the operator look at the host",
	api.ReasonSandbox:       "leave the tool as it is, and have the operator give the host what it lacks",
	api.ReasonAdapter:       "leave the tool as it is, and have the operator install toolhost in full",
	api.ReasonPolicy:        "correct what the call is granted",
	api.ReasonSecrets:       "correct the secrets that the call is given",
	api.ReasonLimits:        "correct the limits of the call",
	api.ReasonKeep:          "correct how the tool's process is kept",
	api.ReasonDir:           "correct the working directory, or grant it to the call",
	api.ReasonTool:          "correct the path or the name of the tool",
	api.ReasonCommand:       "name a command",
	api.ReasonNotFound:      "correct the command, or have it installed",
	api.ReasonNotExecutable: "make the file a program that can be executed",
}

func hintOf(r *api.Result) string {
	switch {
	case r.Status == api.StatusStartFailed:
		return startHints[r.Reason]
	case r.Status == api.StatusCrashed && r.Reason == api.ReasonLauncher:
		return "call again; where it happens again, have the operator find what kills processes on this machine"
	}
	return hints[r.Status]
}

var prefixes = map[api.Status]string{
	api.StatusTimeout: "[TIMEOUT]", api.StatusCancelled: "[CANCELLED]", api.StatusDenied: "[DENIED]", api.StatusOOM: "[OOM]",
	api.StatusPidsLimit: "[LIMIT]", api.StatusOutputLimit: "[LIMIT]", api.StatusCPULimit: "[LIMIT]",
}

// causePrefix keeps the first cause's prefix for a call that is unkillable.
func causePrefix(r *api.Result) string {
	status := r.Status
	if status == api.StatusUnkillable {
		status = cause(r.Kill.Cause).status()
	}
	if p, ok := prefixes[status]; ok {
		return p
	}
	return "[FAILED]"
}

// message is the paragraph for the model. A success needs none, unless something
// had begun to end the call before.
func message(r *api.Result, began outcome, askable time.Duration) string {
	if r.Status == api.StatusOK && began.status == "" {
		return ""
	}
	if r.Status == api.StatusOK {
		return fmt.Sprintf("[NOTE] Tool %q %s. Its result came all the same, and is complete.", r.Tool, whatHappened(r, began))
	}
	parts := []string{causePrefix(r), fmt.Sprintf("Tool %q %s.", r.Tool, whatHappened(r, outcome{r.Status, r.Reason}))}
	for _, part := range []string{processesSentence(r), sideEffectsSentence(r), partialSentence(r), nextStep(r, askable)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// whatHappened is what came of the call, or had come of it before its result came.
func whatHappened(r *api.Result, o outcome) string {
	ran := seconds(cmp.Or(r.Timing.StartMs+r.Timing.RunMs, r.Timing.QueueMs)) // until the kill ladder, if there was one
	switch o.status {
	case api.StatusTimeout:
		return timeoutPhrase(r, o.reason)
	case api.StatusCancelled:
		return fmt.Sprintf("was aborted after %s (%s)", ran, o.reason)
	case api.StatusOOM:
		if o.reason == api.ReasonHostMemory {
			return fmt.Sprintf("was killed after %s because all calls together had used up the memory that the host gives to calls", ran)
		}
		return fmt.Sprintf("ran out of memory after %s: its limit is %d bytes for all its processes", ran, r.Limits.MemoryBytes)
	case api.StatusPidsLimit:
		return fmt.Sprintf("ended after %s without a result when it had reached its limit of %d processes and threads", ran, r.Limits.Pids)
	case api.StatusCPULimit:
		return fmt.Sprintf("was stopped after %s: it had used up its CPU time limit of %s", ran, seconds(r.Limits.CPUTimeMs))
	case api.StatusOutputLimit:
		if r.Kill.Cause == "" {
			return fmt.Sprintf("ended after %s, and had written more than its limit of %d bytes", ran, r.Limits.OutputTotalBytes)
		}
		return fmt.Sprintf("was stopped after %s: it had written more than its limit of %d bytes", ran, r.Limits.OutputTotalBytes)
	case api.StatusCollateral:
		return fmt.Sprintf("was killed after %s together with another call that its process was serving", ran)
	case api.StatusUnkillable:
		return fmt.Sprintf("was sent SIGKILL, but %d of its processes could not be killed within %s (the kernel holds them)", r.Kill.Survivors, seconds(r.Kill.LatencyUs/1000))
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
	if r.ToolError != nil && r.Kill.Cause != string(causeProtocol) { // of which the tool has said nothing
		detail = shorten(text.FirstLine(r.ToolError.Message))
	}
	switch o.status {
	case api.StatusInvalidArgs:
		if r.Timing.RunMs > 0 || r.Retry.SideEffects != "none" {
			return "refused its arguments: " + detail
		}
		return "was not called, for its arguments are invalid: " + detail
	case api.StatusStartFailed:
		return "could not be started: " + detail
	case api.StatusOverloaded:
		switch o.reason {
		case api.ReasonData, api.ReasonKeep:
			return "was not called: " + detail
		case api.ReasonMemory:
			return "was stopped after " + ran + ", for the host is overloaded: " + detail
		}
		return "was not called, for the host is overloaded: " + detail
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
		return fmt.Sprintf("was stopped after %s because %s", seconds(ran), over)
	}
	limit := seconds(*r.Timing.TimeoutMs)
	switch {
	case reason == budget.ReasonIdle || reason == budget.ReasonTotal:
		return fmt.Sprintf("was stopped after %s because %s (its whole limit is %s)", seconds(ran), over, limit)
	case ran > *r.Timing.TimeoutMs+lateMs:
		return fmt.Sprintf("was stopped after %s, later than its limit of %s since the host was held up", seconds(ran), limit)
	}
	return fmt.Sprintf("was stopped after %s, its limit", limit)
}

// overPhrase is which of a call's times was over.
func overPhrase(r *api.Result, reason api.Reason) string {
	switch reason {
	case budget.ReasonIdle:
		return "it had sent nothing for " + seconds(r.Timing.SilenceLimitMs)
	case budget.ReasonTotal:
		return "the time of its stream was over"
	}
	return "its time was over"
}

const lateHint = "give its start more time, or see why it is slow"

// lateMessage is that of a tool which was not ready in time to be called.
func lateMessage(r *api.Result) string {
	what := fmt.Sprintf("%s Tool %q was not ready in time: %s.", prefixes[api.StatusTimeout], r.Tool, shorten(text.FirstLine(r.ToolError.Message)))
	return strings.Join([]string{what, processesSentence(r), sideEffectsSentence(r), "Next: " + lateHint + "."}, " ")
}

// crashPhrase is an adapter's word of how what it runs has ended, else the
// process's own end.
func crashPhrase(r *api.Result) string {
	if r.ToolError != nil && r.ToolError.Message != "" {
		return shorten(text.FirstLine(r.ToolError.Message))
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
	case r.Kill.Reaped == 1:
		return "Its one process was killed."
	case r.Kill.Reaped > 1:
		return fmt.Sprintf("All %d of its processes were killed.", r.Kill.Reaped)
	}
	return "No process of it is left."
}

func sideEffectsSentence(r *api.Result) string {
	if r.Retry.SideEffects == "none" {
		return "It has changed nothing."
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

func seconds(ms int64) string {
	return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) + "s"
}

// maxDetailRunes keeps a message one short paragraph, whatever a tool says.
const maxDetailRunes = 500

func shorten(s string) string { return api.Cut(s, maxDetailRunes) }
