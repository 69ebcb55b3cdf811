package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// end makes the one result of a call that is over.
func (c *remote) end(ctx context.Context) {
	switch c.state.Phase() {
	case start.Ended:
		c.finish(c.complete())
	case start.Lost:
		if c.gone == nil { // it was given up, and nobody else took it
			c.gone = &gone{api.ReasonUnreachable, "unknown"}
			c.given = c.attempts[slices.IndexFunc(c.attempts, func(a *attempt) bool { return a.doubted })]
		}
		c.finish(c.lost())
	default: // it has started nowhere
		switch {
		case c.release != nil:
			c.runsHere(ctx, c.release)
		case c.failed == nil && c.aborted == 0 && c.mayRunHere() && !c.turnedAway:
			c.runsHere(ctx, func() {})
		default:
			r := c.startedNowhere()
			r.Timing.QueueMs += (now() - c.began).Milliseconds()
			c.finish(r)
		}
	}
}

// runsHere hands the call to this machine, once it is on record that no worker has it any more.
func (c *remote) runsHere(ctx context.Context, release func()) {
	if c.given != nil && c.request.Placed != nil {
		if err := c.request.Placed("", len(c.attempts)); err != nil {
			release()
			c.finish(unrecorded(c.request, err))
			return
		}
	}
	c.call.runsAfter(c.f.host.Start(ctx, c.request), now()-c.began, release)
}

// finish hands the result over, after the event that ends the call.
func (c *remote) finish(r *api.Result) {
	r.Warnings = append(r.Warnings, c.unfit...)
	c.events.end(r)
	if c.state.Doubted() { // what another worker has started may not have ended yet
		c.call.answer(r)
		return
	}
	c.call.finish(r)
}

// complete is the worker's own result.
func (c *remote) complete() *api.Result {
	r, err := c.result.Result(portable.MaxElements + c.limits().OutputBytes/minContent)
	if err != nil || r.CallID != c.request.ID {
		c.gone = &gone{api.ReasonProtocol, "unknown"}
		return c.lost()
	}
	r.Where, r.Marks = c.at(), c.marks(r)
	if c.unspilled(r.Output) {
		r.Warnings = append(r.Warnings, "output that the result does not keep is lost: workers write no spill files (dirs.spill)")
	}
	// Queueing here comes before the worker's clock.
	r.Timing.QueueMs += r.Where.PlaceMs
	return r
}

// unspilled says whether output is lost that would be in a spill file, had this machine made
// the call.
func (c *remote) unspilled(o api.Output) bool {
	lost := o.Stdout.DroppedBytes + o.Stderr.DroppedBytes
	if c.request.Command != nil { // whose content is its output
		lost += o.Content.DroppedBytes
	}
	return lost > 0 && c.f.config.Supervisor.SpillDir != "" && o.Stdout.SpillPath == "" && o.Stderr.SpillPath == ""
}

// at is where the call was.
func (c *remote) at() *api.Where {
	return &api.Where{Worker: c.given.id.Worker, Attempt: len(c.attempts), PlaceMs: (c.placed - c.began).Milliseconds()}
}

// lost is the result of a call whose end nobody knows.
func (c *remote) lost() *api.Result {
	where := c.at()
	where.StillRunning = c.gone.running
	if c.state.Doubted() {
		where.StillRunning = "unknown"
	}
	harmless := c.harmless()
	r := supervisor.Verdict{CallID: c.request.ID, Tool: c.request.ToolName(), Status: api.StatusLost, Reason: c.gone.reason}.Result()
	r.Where, r.Marks = where, c.marks(nil)
	c.timing(&r.Timing)
	r.Timing.Profile, r.Timing.GraceLimitMs = budget.ToolCall, c.started.GetGraceMs()
	if ms := c.started.GetTimeoutMs(); ms > 0 {
		r.Timing.TimeoutMs = &ms
	}
	if bounds, err := c.limits().Bounds(); err == nil {
		r.Limits = bounds.Applied()
	}
	c.partial.Fill(r)
	if n := c.partial.Missed; n > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d events came too fast to be sent, and output in them is missing", n))
	}
	r.Retry = api.Retry{Retryable: harmless, SideEffects: "possible", Hint: "look at what it has changed before it is called again"}
	if c.request.Tool.ReadOnly {
		r.Retry.SideEffects = "none"
	}
	if harmless {
		r.Retry.Hint = "call it again"
	}
	running := "Whether it still runs is not known."
	if where.StillRunning == "no" {
		running = "Nothing of it runs any more."
	}
	effects := "What it had changed by then is not known."
	if c.request.Tool.ReadOnly {
		effects = "It changes nothing."
	}
	r.Message = fmt.Sprintf("[LOST] Tool %q was lost: %s. %s %s %s", r.Tool, whyLost(where.Worker, c.gone.reason), c.partial.Arrived(), running, effects)
	return r
}

func whyLost(worker string, reason api.Reason) string {
	switch reason {
	case api.ReasonUnreachable:
		return "its worker " + worker + " was not heard any more while it ran, or has no record of it"
	case api.ReasonWorkerDied:
		return "its worker " + worker + " has died while it ran"
	}
	return "its worker " + worker + " has not kept to the protocol"
}

// startedNowhere is the result of a call that failed, was aborted, or was taken by no worker:
// where all refuse it for what it is, as the last of them has it.
func (c *remote) startedNowhere() *api.Result {
	switch {
	case c.failed != nil:
		return c.failed
	case c.aborted > 0:
		return aborted(c.request, c.reason)
	}
	why := c.whyNot()
	if why == "" {
		why = c.f.noneTakes(c.where)
	}
	what := "was not called, for no worker takes it: " + why
	switch {
	case c.all(fleetv1.Why_WHY_CEILING):
		return notStarted(c.request, api.StatusPolicyViolation, api.ReasonPolicy, what)
	case c.all(fleetv1.Why_WHY_CEILING, fleetv1.Why_WHY_CANNOT):
		return c.asRefused(what)
	}
	return notStarted(c.request, api.StatusOverloaded, api.ReasonAdmission, what) // another time it may be otherwise
}

// refusable are the statuses of a call whose program has not begun: what a Describe of it
// can come to, too.
var refusable = []api.Status{
	api.StatusInvalidArgs, api.StatusPolicyViolation, api.StatusStartFailed, api.StatusTimeout, api.StatusProtocolError, api.StatusCrashed, api.StatusOOM,
}

// asRefused is a worker's own result of a call that it cannot make, with what the others
// say.
func (c *remote) asRefused(what string) *api.Result {
	for i, last := range slices.Backward(c.refusals) {
		r, err := portable.ReadRefusal(last.never.GetResult(), c.request.ID)
		if err != nil || !slices.Contains(refusable, r.Status) {
			continue
		}
		r.Where = &api.Where{Worker: last.of.id.Worker, Attempt: last.of.n + 1}
		for _, other := range slices.Delete(slices.Clone(c.refusals), i, i+1) {
			r.Warnings = append(r.Warnings, other.String())
		}
		return r
	}
	return notStarted(c.request, api.StatusStartFailed, api.ReasonTool, what)
}

// refusal is why a call is not made.
type refusal struct {
	of    *attempt // nil: of none
	why   string
	never *fleetv1.Never // the worker's word that it will not start it, if it has said so
	// silent: nothing is heard of the worker, or it knows nothing of the offer.
	silent bool
}

func (r refusal) String() string {
	if r.of == nil {
		return r.why
	}
	return r.of.id.Worker + ": " + r.why
}

func (c *remote) whyNot() string {
	var all []string
	for _, r := range c.refusals {
		if why := r.String(); !slices.Contains(all, why) { // a busy worker is asked again
			all = append(all, why)
		}
	}
	return strings.Join(all, "; ")
}

// later says whether the call may be made another time: where workers are busy or not heard
// just now, or one for which it has waited may be started again.
func (c *remote) later() bool {
	if !c.waits && len(c.refusals) == 0 {
		return !c.mayRunHere() && c.f.mayReturn(c.where)
	}
	return !slices.ContainsFunc(c.refusals, func(r refusal) bool {
		why := r.never.GetWhy()
		return !r.silent && why != fleetv1.Why_WHY_BUSY && (why != fleetv1.Why_WHY_DRAINING || !c.waits)
	})
}

// all says whether the call is not made for these reasons alone.
func (c *remote) all(reasons ...fleetv1.Why) bool {
	return len(c.refusals) > 0 && !slices.ContainsFunc(c.refusals, func(r refusal) bool { return !slices.Contains(reasons, r.never.GetWhy()) })
}

const changedNothing = "It has not started, and has changed nothing."

// notStarted is the result of a call that has run nothing.
func notStarted(r supervisor.Request, status api.Status, reason api.Reason, what string) *api.Result {
	prefix := "[FAILED]"
	if status == api.StatusCancelled {
		prefix = "[CANCELLED]"
	}
	result := supervisor.Verdict{
		CallID: r.ID, Tool: r.ToolName(), Status: status, Reason: reason,
		Message: fmt.Sprintf("%s Tool %q %s. %s", prefix, r.ToolName(), what, changedNothing),
	}.Result()
	result.Timing.Profile = budget.ToolCall // the only one of calls that may go to workers
	if status != api.StatusCancelled {
		result.ToolError = &api.ToolError{Kind: "error", Message: what}
	}
	return result
}

func aborted(r supervisor.Request, reason api.Reason) *api.Result {
	return notStarted(r, api.StatusCancelled, reason, fmt.Sprintf("was aborted before a worker had started it (%s)", reason))
}

func unrecorded(r supervisor.Request, err error) *api.Result {
	return notStarted(r, api.StatusOverloaded, api.ReasonJournal, "was not called: "+err.Error())
}

func failedHere(r supervisor.Request, reason api.Reason, err error) *api.Result {
	return notStarted(r, api.StatusStartFailed, reason, "could not be started: "+err.Error())
}

// refusedByName is the result of a call that must go to a worker and uses what none can do.
func refusedByName(r supervisor.Request, stays []string) *api.Result {
	result := notStarted(r, api.StatusPolicyViolation, api.ReasonPolicy,
		fmt.Sprintf("was not called: it is to run on a worker, and no worker can do this: %s", strings.Join(stays, "; ")))
	result.Timing.Profile = "" // it may be the host's own that keeps the call there
	return result
}
