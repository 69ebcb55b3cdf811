package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/text"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// maxArgumentBytes caps a call's arguments.
const maxArgumentBytes = 1 << 20

// refusal is why a call never began.
type refusal struct {
	status api.Status
	reason api.Reason
	err    error
	// describing is the result of the Describe that failed, if that was it.
	describing *api.Result
	// again is when a tool that rests is asked anew; zero if it does not.
	again time.Duration
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refuse(status api.Status, reason api.Reason, err error) error {
	return &refusal{status: status, reason: reason, err: err}
}

// prepare does all that can be done before the call has a process: it finds
// the binary, checks the arguments and settles limits and timeout.
func (c *Call) prepare(ctx context.Context) error {
	c.limits = c.request.Limits.over(c.s.config.Limits)
	if err := c.limits.Validate(); err != nil {
		return refuse(api.StatusStartFailed, api.ReasonLimits, err)
	}
	if err := c.limitWithoutCgroup(); err != nil {
		return err
	}
	if err := c.checkKeep(); err != nil {
		return err
	}
	if err := c.checkSecrets(); err != nil {
		return err
	}
	if err := c.findBinary(); err != nil {
		return err
	}
	if err := c.surround(); err != nil {
		return err
	}
	if err := c.boundArguments(); err != nil {
		return err
	}
	if err := c.checkTool(ctx); err != nil {
		return err
	}
	c.resolution = c.s.resolve(c)
	grace, graceWarnings := c.s.grace(c)
	c.grace = grace
	c.warnings = append(append(c.warnings, c.resolution.Warnings...), graceWarnings...)
	c.settings = append(c.resolution.Settings, graceWarnings...)
	if !c.asks {
		c.settings = append(c.resolution.Warnings, graceWarnings...)
	}
	return nil
}

func (c *Call) findBinary() error {
	path := c.request.Tool.Path
	if c.request.Command != nil {
		if len(c.request.Command.Argv) == 0 {
			return refuse(api.StatusStartFailed, api.ReasonCommand, errors.New("no command given"))
		}
		adapter, err := c.s.config.adapter()
		if err != nil {
			return refuse(api.StatusStartFailed, api.ReasonAdapter, err)
		}
		path = adapter
	}
	found, err := c.s.binaries.find(path)
	if err != nil {
		return refuse(api.StatusStartFailed, api.ReasonTool, err)
	}
	c.binary = found
	want := c.request.SHA256
	if want != "" && c.request.Command == nil && !strings.EqualFold(want, found.sha256) {
		return refuse(api.StatusPolicyViolation, api.ReasonSHA256, wrongHash(found, want))
	}
	return nil
}

// adapter is the toolhost binary that runs commands.
func (c *Config) adapter() (string, error) {
	if c.Adapter != "" {
		return c.Adapter, nil
	}
	path, err := lookUp("toolhost")
	if err != nil {
		return "", errors.New("plain commands need the toolhost binary: install it on PATH, or name it in Config.Adapter")
	}
	return path, nil
}

func (c *Call) toolArgs() []string {
	if c.request.Command != nil {
		return append(append(slices.Clone(c.s.config.AdapterArgs), "--"), c.argv()...)
	}
	return c.request.Tool.Args
}

// checkTool describes the binary, finds the tool in it and checks the
// arguments by the tool's own schema, all before the call has a process.
func (c *Call) checkTool(ctx context.Context) error {
	tool, err := c.findTool(ctx)
	if err != nil || tool == nil {
		return err
	}
	c.description = tool.description
	c.events.tool = cmp.Or(c.request.Name, tool.description.GetName())
	hint, rest, err := budget.Hint(c.arguments, c.request.Meta, tool.description.GetTimeoutArgument())
	if err != nil {
		return refuse(api.StatusInvalidArgs, "arguments", err)
	}
	c.arguments = rest
	soft, warnings := budget.SoftHint(c.request.Meta)
	c.hints, c.asks = append(hint.Asks(), soft...), hint.Found
	c.warnings = slices.Concat(c.warnings, hint.Warnings, warnings)
	if c.explains {
		return nil
	}
	if err := tool.validate(c.arguments); err != nil {
		return refuse(api.StatusInvalidArgs, api.ReasonSchema, err)
	}
	return c.buildCommand()
}

// findTool is nil for what has no description: a plain command, and a Describe.
func (c *Call) findTool(ctx context.Context) (*describedTool, error) {
	if tool := c.commandTool(); tool != nil {
		return tool.tool, nil
	}
	if c.describes || c.request.Command != nil {
		return nil, nil
	}
	described, err := c.s.describe(ctx, c.request, c.binary)
	if err != nil {
		return nil, err
	}
	tool, err := described.find(c.request.Tool.Name)
	if err != nil {
		return nil, refuse(api.StatusStartFailed, api.ReasonTool, err)
	}
	return tool, nil
}

// toolHint is what the tool's author thought a good timeout.
func toolHint(d *pluginv1.ToolDescription) budget.Ask {
	hints := d.GetTimeouts()
	ask := budget.Ask{Layer: budget.LayerHint, Detail: "Describe"}
	ask.Timeout = milliseconds(hints.GetTimeoutMs())
	ask.TimeoutUnset = ask.Timeout <= 0
	ask.Soft = milliseconds(hints.GetSoftBudgetMs())
	return ask
}

// refuse makes the result of a call that never began.
func (c *Call) refuse(err error) {
	r := c.emptyResult()
	c.fillOutcome(r, evidence{startErr: err})
	if refused, ok := errors.AsType[*refusal](err); ok {
		c.tellDescribe(r, refused)
	}
	c.closeFilesTo()
	c.policy.Close()
	c.events.publish(api.Event{Kind: api.EventQueued})
	c.publishResult(r)
	c.result = r
	close(c.over)
	close(c.done)
	close(c.gone)
}

// tellDescribe reports the Describe that the call was refused for.
func (c *Call) tellDescribe(r *api.Result, refused *refusal) {
	if refused.again > 0 {
		r.Retry.Hint, r.Retry.Retryable = fmt.Sprintf("call again in %s", refused.again), mayComeOutOtherwise(r)
		r.Retry.AfterMs = refused.again.Milliseconds()
		what := "was not called"
		if r.Status == api.StatusStartFailed {
			what = "could not be started"
		}
		r.Message = fmt.Sprintf("%s Tool %q %s: %s. It has changed nothing. Next: %s.", causePrefix(r), r.Tool, what, shorten(text.FirstLine(refused.err.Error())), r.Retry.Hint)
		return
	}
	if refused.describing == nil {
		return
	}
	copyEvidence(r, refused.describing)
	r.Message = message(r, outcome{}, c.maxTimeout())
	if r.Status == api.StatusTimeout {
		r.Message, r.Retry.Hint = lateMessage(r), lateHint
	}
}

// copyEvidence takes over what a failed Describe has to show, for it was what
// this call came to.
func copyEvidence(r, d *api.Result) {
	r.Timing, r.Kill, r.Exit, r.Usage, r.Output, r.Content, r.Limits = d.Timing, d.Kill, d.Exit, d.Usage, d.Output, d.Content, d.Limits
	r.Timing.StartMs, r.Timing.RunMs = d.Timing.StartMs+d.Timing.RunMs, 0 // all of it went before the call
	r.Overran, r.Retry.SideEffects = d.Overran, d.Retry.SideEffects
	r.Retry.Retryable = r.Retry.Retryable && d.Retry.SideEffects == "none"
	r.Details = deadlineDetails(r)
}
