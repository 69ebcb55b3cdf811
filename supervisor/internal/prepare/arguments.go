package prepare

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/wirejson"
	"github.com/toolhost/toolhost/supervisor/internal/describe"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// boundArguments fills in absent arguments and refuses too large ones.
func (n *preparation) boundArguments() error {
	n.Arguments = orEmpty(n.Request.Arguments)
	if err := bounded(n.Arguments); err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, api.ReasonSize, err)
	}
	var err error
	if n.Arguments, err = fitArguments("the arguments", n.Arguments); err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, api.ReasonArguments, err)
	}
	if n.Request.Meta, err = fitArguments("the _meta", n.Request.Meta); err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, api.ReasonArguments, err)
	}
	return nil
}

func bounded(arguments json.RawMessage) error {
	if len(arguments) > maxArgumentBytes {
		return fmt.Errorf("the arguments have %d bytes, at most %d are allowed", len(arguments), maxArgumentBytes)
	}
	return nil
}

// ArgumentCheck gives what a call of the described tool does to its arguments
// first: it refuses those that the tool's own schema does not allow.
func ArgumentCheck(d *pluginv1.ToolDescription) func(arguments, meta json.RawMessage) error {
	return func(arguments, meta json.RawMessage) error {
		_, err := checked(d, arguments, meta)
		return err
	}
}

// CommandCheck is ArgumentCheck for a command, which may demand more than its schema says.
func CommandCheck(tool *spec.CommandTool) func(arguments, meta json.RawMessage) error {
	return func(arguments, meta json.RawMessage) error {
		rest, err := checked(tool.Description(), arguments, meta)
		if err == nil {
			_, _, err = build(tool, rest)
		}
		return err
	}
}

// checked are the arguments without what they ask for beside the tool.
func checked(d *pluginv1.ToolDescription, arguments, meta json.RawMessage) (rest json.RawMessage, err error) {
	if err := bounded(arguments); err != nil {
		return nil, err
	}
	if arguments, err = fitArguments("the arguments", arguments); err != nil {
		return nil, err
	}
	tool, err := describe.NewTool(d)
	if err != nil {
		return nil, err
	}
	if _, rest, err = budget.Hint(orEmpty(arguments), meta, d.GetTimeoutArgument()); err != nil {
		return nil, err
	}
	return rest, tool.Validate(rest)
}

// build makes the command of arguments that fit the tool's schema.
func build(tool *spec.CommandTool, arguments json.RawMessage) (argv []string, stdin []byte, err error) {
	argv, stdin, err = tool.Spec().Build(arguments)
	if err == nil && len(argv) == 0 {
		err = errors.New("they make an empty command")
	}
	return argv, stdin, err
}

// orEmpty are arguments, or the object that absent ones stand for.
func orEmpty(arguments json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(arguments)) == 0 {
		return json.RawMessage("{}")
	}
	return arguments
}

// checkTool finds the tool in what its binary says of itself, and checks the
// arguments by the tool's own schema.
func (n *preparation) checkTool(ctx context.Context) error {
	if n.Request.Method != "" {
		n.Label = cmp.Or(n.Request.Name, n.Request.Method)
		return nil
	}
	tool, err := n.findTool(ctx)
	if err != nil || tool == nil {
		return err
	}
	n.Description = tool.ToolDescription
	n.Label = cmp.Or(n.Request.Name, tool.GetName())
	hint, rest, err := budget.Hint(n.Arguments, n.Request.Meta, tool.GetTimeoutArgument())
	if err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, api.ReasonArguments, err)
	}
	n.Arguments = rest
	soft, warnings := budget.SoftHint(n.Request.Meta)
	n.hints, n.asks = append(hint.Asks(), soft...), hint.Found
	n.Warnings = slices.Concat(n.Warnings, hint.Warnings, warnings)
	if n.Work == ForExplain {
		return nil
	}
	if err := tool.Validate(n.Arguments); err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, api.ReasonSchema, err)
	}
	return n.buildCommand()
}

// findTool is nil for what has no description: a plain command, a Describe, a process
// without a call, and an adapter of a call whose secrets have not come.
func (n *preparation) findTool(ctx context.Context) (*describe.Tool, error) {
	if tool := n.CommandTool(); tool != nil {
		return tool.Checked(), nil
	}
	if n.Describes() || n.Work == ForAhead || n.Request.Command != nil || n.Work == ForOffer && n.Request.Tool.Adapter {
		return nil, nil
	}
	described, err := n.Describe(ctx, n.Request, n.Binary)
	if err != nil {
		return nil, err
	}
	tool, err := described.Find(n.Request.Tool.Name)
	if err != nil {
		return nil, outcome.Refuse(api.StatusStartFailed, api.ReasonTool, err)
	}
	return tool, nil
}

// buildCommand makes the command of the arguments, which have been checked.
func (n *preparation) buildCommand() error {
	tool := n.CommandTool()
	if tool == nil {
		return nil
	}
	argv, stdin, err := build(tool, n.Arguments)
	if err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, api.ReasonArguments, err)
	}
	command := *n.Request.Command
	command.Argv = append(command.Argv[:1:1], argv[1:]...) // argv[0] is what was looked up
	command.Stdin = bytes.NewReader(stdin)
	n.Request.Command, n.Arguments = &command, []byte("{}")
	if tool.Spec().Reader != nil {
		n.Reader = tool.Spec().Reader()
	}
	return nil
}

// toolHint is what the tool's author thought a good timeout.
func toolHint(d *pluginv1.ToolDescription) budget.Ask {
	hints := d.GetTimeouts()
	ask := budget.Ask{Layer: budget.LayerHint, Detail: "Describe"}
	ask.Timeout = Milliseconds(hints.GetTimeoutMs())
	ask.TimeoutUnset = ask.Timeout <= 0
	ask.Soft = Milliseconds(hints.GetSoftBudgetMs())
	return ask
}

// Milliseconds is a duration of the wire; one that is too long has no end.
func Milliseconds(ms int64) time.Duration {
	if ms > int64(budget.Infinite/time.Millisecond) {
		return budget.Infinite
	}
	return time.Duration(ms) * time.Millisecond
}

// fitArguments returns arguments, or other JSON of a caller, as tools can read
// it. Invalid JSON is found later.
func fitArguments(what string, raw json.RawMessage) (json.RawMessage, error) {
	clean, err := wirejson.CleanArguments(raw)
	switch {
	case err == nil:
		return clean, nil
	case wirejson.IsUnfit(err), json.Valid(raw): // the latter takes bytes that are not UTF-8
		return nil, fmt.Errorf("%s cannot be taken: %w", what, err)
	}
	return raw, nil
}
