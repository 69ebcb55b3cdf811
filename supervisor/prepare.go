package supervisor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/describe"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// maxArgumentBytes caps a call's arguments.
const maxArgumentBytes = 1 << 20

// prepare does all that can be done before the call has a process: it finds
// the binary, checks the arguments and settles limits and timeout.
func (c *Call) prepare(ctx context.Context) error {
	var err error
	if c.limits, err = c.request.Limits.Over(c.s.config.Limits).Bounds(); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonLimits, err)
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
	if c.request.Command != nil { // placeCommand finds it
		if len(c.request.Command.Argv) == 0 {
			return outcome.Refuse(api.StatusStartFailed, api.ReasonCommand, errors.New("no command given"))
		}
		return nil
	}
	found, err := c.s.binaries.find(c.request.Tool.Path)
	if err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonTool, err)
	}
	c.binary = found
	if want := c.request.SHA256; want != "" && !strings.EqualFold(want, found.sha256) {
		return outcome.Refuse(api.StatusPolicyViolation, api.ReasonSHA256, wrongHash(found, want))
	}
	return nil
}

func (c *Call) toolArgs() []string {
	if c.request.Command != nil {
		return append([]string{sandbox.CommandMode}, c.argv()...)
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
	c.description = tool.ToolDescription
	c.label = cmp.Or(c.request.Name, tool.GetName())
	hint, rest, err := budget.Hint(c.arguments, c.request.Meta, tool.GetTimeoutArgument())
	if err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, "arguments", err)
	}
	c.arguments = rest
	soft, warnings := budget.SoftHint(c.request.Meta)
	c.hints, c.asks = append(hint.Asks(), soft...), hint.Found
	c.warnings = slices.Concat(c.warnings, hint.Warnings, warnings)
	if c.explains {
		return nil
	}
	if err := tool.Validate(c.arguments); err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, api.ReasonSchema, err)
	}
	return c.buildCommand()
}

// findTool is nil for what has no description: a plain command, and a Describe.
func (c *Call) findTool(ctx context.Context) (*describe.Tool, error) {
	if tool := c.commandTool(); tool != nil {
		return tool.Checked(), nil
	}
	if c.describes || c.request.Command != nil {
		return nil, nil
	}
	described, err := c.s.describe(ctx, c.request, c.binary)
	if err != nil {
		return nil, err
	}
	tool, err := described.Find(c.request.Tool.Name)
	if err != nil {
		return nil, outcome.Refuse(api.StatusStartFailed, api.ReasonTool, err)
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
	c.fillOutcome(r, outcome.Evidence{StartErr: err})
	if refused, ok := errors.AsType[*outcome.Refusal](err); ok {
		refused.Word(r, c.terms())
	}
	c.closeFilesTo()
	c.endService()
	c.policy.Close()
	c.events.Publish(api.Event{Kind: api.EventQueued})
	c.publishResult(r)
	c.result = r
	close(c.over)
	close(c.done)
	close(c.gone)
}
