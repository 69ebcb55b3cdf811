package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/describe"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// boundArguments fills in absent arguments and refuses too large ones.
func (c *Call) boundArguments() error {
	c.arguments = orEmpty(c.request.Arguments)
	if err := bounded(c.arguments); err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, "size", err)
	}
	var err error
	if c.arguments, err = fitArguments("the arguments", c.arguments); err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, "arguments", err)
	}
	if c.request.Meta, err = fitArguments("the _meta", c.request.Meta); err != nil {
		return outcome.Refuse(api.StatusInvalidArgs, "arguments", err)
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
		if err := bounded(arguments); err != nil {
			return err
		}
		arguments, err := fitArguments("the arguments", arguments)
		if err != nil {
			return err
		}
		tool, err := describe.NewTool(d)
		if err != nil {
			return err
		}
		_, rest, err := budget.Hint(orEmpty(arguments), meta, d.GetTimeoutArgument())
		if err != nil {
			return err
		}
		return tool.Validate(rest)
	}
}

// orEmpty are arguments, or the object that absent ones stand for.
func orEmpty(arguments json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(arguments)) == 0 {
		return json.RawMessage("{}")
	}
	return arguments
}
