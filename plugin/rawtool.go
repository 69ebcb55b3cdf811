package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/schema"
)

// NewRawTool is like NewTool, for a tool that is known only at run time, such as
// an adapter's: its arguments and result are JSON. inputSchema must be of type
// object. If outputSchema is nil there is no result, and do must return nil. do
// gets the arguments as the host sent them, {} for none; the host has validated
// them by inputSchema.
//
// Unlike NewTool, which panics, it returns an error for a tool that could never
// work, since the description may be untrusted: for a bad name, text that is not
// UTF-8, or a schema that hosts refuse (see package schema).
func NewRawTool(t Tool, inputSchema, outputSchema json.RawMessage, do func(ctx context.Context, arguments json.RawMessage, out *Output) (json.RawMessage, error)) (Registered, error) {
	if err := t.check(); err != nil {
		return Registered{}, err
	}
	if _, err := schema.ParseObject(inputSchema); err != nil {
		return Registered{}, fmt.Errorf("input schema of tool %q: %w", t.Name, err)
	}
	if len(outputSchema) > 0 {
		if _, err := schema.Parse(outputSchema); err != nil {
			return Registered{}, fmt.Errorf("output schema of tool %q: %w", t.Name, err)
		}
	}
	d := t.describe(inputSchema, outputSchema)
	return Registered{name: t.Name, describe: func() *pluginv1.ToolDescription { return d }, run: func(ctx context.Context, arguments []byte, out *Output) ([]byte, error) {
		if len(bytes.TrimSpace(arguments)) == 0 {
			arguments = []byte("{}")
		}
		result, err := do(ctx, arguments, out)
		if err == nil && len(result) > 0 && (!json.Valid(result) || !utf8.Valid(result)) {
			return nil, fmt.Errorf("the result of tool %q is not valid JSON, which is UTF-8", t.Name)
		}
		return result, err
	}}, nil
}
