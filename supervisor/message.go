package supervisor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toolhost/toolhost/budget"
)

// fillOutcome makes the judgement and everything that follows from it.
func (c *Call) fillOutcome(r *Result, e evidence) {
	o := classify(e)
	r.Status, r.Reason = o.status, o.reason
	r.Code = codeNames[grpcCode(o.status, e.cause)]
	r.Partial = o.status != StatusOK && (len(r.Content) > 0 || r.Output.Stdout.SeenBytes > 0)
	r.ToolError = toolErrorOf(e)
	r.Exit = exitOf(e, c.request.Command != nil)
	r.Usage = usageOf(e.usage)
	if e.final != nil && e.complete() && len(e.final.GetStructured()) > 0 {
		r.Structured = e.final.GetStructured()
	}
	if e.complete() && c.reader != nil {
		r.Structured = c.structured
	}
	if r.Status == StatusTimeout && r.Reason == budget.ReasonIdle {
		r.Timing.SilenceLimitMs = c.silence.Milliseconds()
	}
	r.Overran = r.Overran || e.cause == causeDeadline || r.OK() && e.cause != causeNone
	c.fillRetry(r, e)
	c.veil.result(r)
	r.Message = message(r, c.maxTimeout())
}

// grpcCode of an unkillable call is that of what began its ladder.
func grpcCode(status Status, why cause) codes.Code {
	if status == StatusUnkillable && why != causeNone {
		return why.status().GRPC()
	}
	return status.GRPC()
}

// fillRetry gives advice: what never started, and what is confirmed to be
// harmless, can be called again.
func (c *Call) fillRetry(r *Result, e evidence) {
	tool := c.request.Tool
	r.Retry.SideEffects = "possible"
	if !e.began() || tool.ReadOnly {
		r.Retry.SideEffects = "none"
	}
	r.Retry.Retryable = r.mayComeOutOtherwise() && (!e.began() || tool.ReadOnly || tool.Idempotent)
	r.Retry.Hint = hints[r.Status]
	switch {
	case r.Status == StatusTimeout && e.cause == causeDeadline:
		c.suggestTimeout(r)
	case r.Status == StatusTimeout && e.cause == causeIdle:
		r.Retry.Hint = "take smaller steps, each of which says something"
	case r.Status == StatusTimeout: // more time is not what was wanting
		r.Retry.Hint = "take smaller steps"
	}
	if r.Status == StatusProtocolError && tool.Adapter {
		r.Retry.Hint = "tell who made the server"
	}
}

// mayComeOutOtherwise says that the same call is not bound to end the same way,
// nor against what somebody has decided.
func (r *Result) mayComeOutOtherwise() bool {
	switch r.Status {
	case StatusOK, StatusInvalidArgs, StatusDenied, StatusPolicyViolation:
		return false
	case StatusCancelled:
		return r.Reason != string(AbortUser) && r.Reason != string(AbortParent)
	}
	return true
}

// suggestTimeout names four times the timeout, as far as a caller may ask.
func (c *Call) suggestTimeout(r *Result) {
	limit := c.maxTimeout()
	if c.resolution.Timeout >= limit {
		return
	}
	r.Retry.SuggestedTimeoutMs = new(min(4*c.resolution.Timeout, limit).Milliseconds())
}

// maxTimeout is the longest timeout that a call can have.
func (c *Call) maxTimeout() time.Duration {
	if c.resolution.Timeout == budget.Infinite {
		return budget.Infinite
	}
	return c.resolution.Max
}

var hints = map[Status]string{
	StatusTimeout:       "ask for more time or do less in one call",
	StatusOOM:           "do less in one call, or have the operator raise the memory limit",
	StatusPidsLimit:     "start fewer processes, or have the operator raise the pids limit",
	StatusCPULimit:      "do less in one call, or have the operator raise the CPU time limit",
	StatusOutputLimit:   "write less, or have the operator raise the output limit",
	StatusOverloaded:    "wait and call again",
	StatusCollateral:    "call again",
	StatusInvalidArgs:   "correct the arguments",
	StatusStartFailed:   "correct the tool's set-up",
	StatusCrashed:       "look at the tool's stderr",
	StatusNoResult:      "look at the tool's stderr",
	StatusProtocolError: "rebuild the tool with a matching SDK",
}

var prefixes = map[Status]string{
	StatusTimeout: "[TIMEOUT]", StatusCancelled: "[CANCELLED]", StatusDenied: "[DENIED]", StatusOOM: "[OOM]",
	StatusPidsLimit: "[LIMIT]", StatusOutputLimit: "[LIMIT]", StatusCPULimit: "[LIMIT]",
}

// causePrefix keeps the first cause's prefix for a call that is unkillable.
func causePrefix(r *Result) string {
	status := r.Status
	if status == StatusUnkillable {
		status = cause(r.Kill.Cause).status()
	}
	if p, ok := prefixes[status]; ok {
		return p
	}
	return "[FAILED]"
}

// message is the paragraph for the model; a success needs none.
func message(r *Result, maxTimeout time.Duration) string {
	if r.Status == StatusOK {
		return ""
	}
	parts := []string{causePrefix(r), fmt.Sprintf("Tool %q %s.", r.Tool, whatHappened(r))}
	for _, part := range []string{processesSentence(r), sideEffectsSentence(r), partialSentence(r), nextStep(r, maxTimeout)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

func whatHappened(r *Result) string {
	ran := seconds(cmp.Or(r.Timing.StartMs+r.Timing.RunMs, r.Timing.QueueMs)) // until the kill ladder, if there was one
	switch r.Status {
	case StatusTimeout:
		return timeoutPhrase(r)
	case StatusCancelled:
		return fmt.Sprintf("was aborted after %s (%s)", ran, r.Reason)
	case StatusOOM:
		if r.Reason == reasonHostMemory {
			return fmt.Sprintf("was killed after %s because all calls together had used up the memory that the host gives to calls", ran)
		}
		return fmt.Sprintf("ran out of memory after %s: its limit is %d bytes for all its processes", ran, r.Limits.MemoryBytes)
	case StatusPidsLimit:
		return fmt.Sprintf("ended after %s without a result when it had reached its limit of %d processes and threads", ran, r.Limits.Pids)
	case StatusCPULimit:
		return fmt.Sprintf("was stopped after %s: it had used up its CPU time limit of %s", ran, seconds(r.Limits.CPUTimeMs))
	case StatusOutputLimit:
		return fmt.Sprintf("was stopped after %s: it had written more than its limit of %d bytes", ran, r.Limits.OutputTotalBytes)
	case StatusCollateral:
		return fmt.Sprintf("was killed after %s together with another call that its process was serving", ran)
	case StatusUnkillable:
		return fmt.Sprintf("was sent SIGKILL, but %d of its processes could not be killed within %s (the kernel holds them)", r.Kill.Survivors, seconds(r.Kill.LatencyUs/1000))
	case StatusCrashed:
		return fmt.Sprintf("crashed after %s without a result (%s)", ran, crashPhrase(r))
	case StatusNoResult:
		return fmt.Sprintf("exited after %s without giving a result", ran)
	}
	return failurePhrase(r, ran)
}

func failurePhrase(r *Result, ran string) string {
	detail := string(r.Status)
	if r.ToolError != nil {
		detail = shorten(firstLine(r.ToolError.Message))
	}
	switch r.Status {
	case StatusInvalidArgs:
		if r.Timing.RunMs > 0 || r.Retry.SideEffects != "none" {
			return "refused its arguments: " + detail
		}
		return "was not called, for its arguments are invalid: " + detail
	case StatusStartFailed:
		return "could not be started: " + detail
	case StatusOverloaded:
		switch r.Reason {
		case reasonData:
			return "was not called: " + detail
		case reasonMemory:
			return "was stopped after " + ran + ", for the host is overloaded: " + detail
		}
		return "was not called, for the host is overloaded: " + detail
	case StatusProtocolError:
		return "broke the protocol after " + ran + ": " + detail
	}
	return "failed after " + ran + ": " + detail
}

func timeoutPhrase(r *Result) string {
	limit := "its limit"
	if r.Timing.TimeoutMs != nil {
		limit = seconds(*r.Timing.TimeoutMs)
	}
	if r.Reason == budget.ReasonIdle {
		return fmt.Sprintf("was stopped after %s because it had sent nothing for %s (its whole limit is %s)", seconds(r.Timing.StartMs+r.Timing.RunMs), seconds(r.Timing.SilenceLimitMs), limit)
	}
	if r.Reason == budget.ReasonTotal {
		return fmt.Sprintf("was stopped after %s, the limit of its stream", seconds(r.Timing.RunMs))
	}
	return fmt.Sprintf("was stopped after %s, its limit", limit)
}

const lateHint = "give its start more time, or see why it is slow"

// lateMessage is that of a tool which was not ready in time to be called.
func lateMessage(r *Result) string {
	what := fmt.Sprintf("%s Tool %q was not ready in time: %s.", prefixes[StatusTimeout], r.Tool, shorten(firstLine(r.ToolError.Message)))
	return strings.Join([]string{what, processesSentence(r), sideEffectsSentence(r), "Next: " + lateHint + "."}, " ")
}

// crashPhrase is an adapter's word of how what it runs has ended, else the
// process's own end.
func crashPhrase(r *Result) string {
	if r.ToolError != nil && r.ToolError.Message != "" {
		return shorten(firstLine(r.ToolError.Message))
	}
	return exitPhrase(r.Exit)
}

func exitPhrase(e Exit) string {
	switch {
	case e.Signal != "":
		return e.Signal
	case e.Code != nil:
		return "exit status " + strconv.Itoa(*e.Code)
	}
	return "no exit status"
}

func processesSentence(r *Result) string {
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

func sideEffectsSentence(r *Result) string {
	if r.Retry.SideEffects == "none" {
		return "It has changed nothing."
	}
	return "Side effects may have happened."
}

func partialSentence(r *Result) string {
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

func nextStep(r *Result, maxTimeout time.Duration) string {
	if r.Status == StatusTimeout && r.Retry.SuggestedTimeoutMs != nil {
		return fmt.Sprintf("Next: ask for more time (up to %s) or take smaller steps.", budget.Format(wholeSeconds(maxTimeout)))
	}
	if r.Status == StatusTimeout && r.Reason != budget.ReasonIdle {
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

func shorten(s string) string { return cutRunes(s, maxDetailRunes) }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
