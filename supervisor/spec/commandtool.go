package spec

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/describe"
)

// CommandTool makes a tool of a command line. NewCommandTool makes one; it may
// be used for any number of calls at once.
type CommandTool struct {
	spec CommandSpec
	tool *describe.Tool
}

// CommandSpec describes a tool for a command, which cannot describe itself as a plugin
// binary does.
type CommandSpec struct {
	// Description is the tool's: name, input schema, annotations, hints.
	Description *pluginv1.ToolDescription
	// Build makes the argument vector and the standard input of a call.
	// Arguments match the description's input schema, and hold no timeout hint
	// any more; an error says what is wrong with them.
	Build func(arguments json.RawMessage) (argv []string, stdin []byte, err error)
	// Reader makes content of one call's standard output; nil leaves that
	// output to Result.Output.
	Reader func() OutputReader
	// Exit says what an exit status other than 0 means: a success after all, and
	// a message for the model. nil means that only 0 is success, without a message.
	Exit func(status int) (ok bool, message string)
	// Shell says that a shell interprets the command; the receipt shows it.
	Shell bool
	// Source is, as JSON, what another machine's program makes the same tool of. Empty
	// keeps its calls on this machine. An approval for more than one call is for this
	// Source: without one it goes on to hold whatever Build makes.
	Source json.RawMessage
}

// OutputReader makes content of what a command writes to its standard output,
// while it writes. It is used by one goroutine, and keeps a bounded part of
// what it was given.
type OutputReader interface {
	// Write takes the next bytes and returns the content that is complete.
	Write(p []byte) []api.Content
	// End returns the rest, and the structured result if there is one. An error says why the
	// output does not satisfy the tool's contract; io.EOF means that it is empty, which is
	// fine with a status other than 0 that means success.
	End() (rest []api.Content, structured json.RawMessage, err error)
}

// OutputWarner is an OutputReader that may warn about output that is valid. It is asked
// after End; "" warns of nothing.
type OutputWarner interface{ Warning() string }

// NewCommandTool checks the description and its schema.
func NewCommandTool(spec CommandSpec) (*CommandTool, error) {
	if spec.Description.GetName() == "" || spec.Build == nil {
		return nil, errors.New("a command tool needs a description with a name, and Build")
	}
	tool, err := describe.NewTool(spec.Description)
	if err != nil {
		return nil, fmt.Errorf("input schema of tool %q: %w", spec.Description.GetName(), err)
	}
	return &CommandTool{spec: spec, tool: tool}, nil
}

// Checked returns the description, ready for use.
func (t *CommandTool) Checked() *describe.Tool { return t.tool }

// Spec returns what the tool was made of.
func (t *CommandTool) Spec() CommandSpec { return t.spec }

// Description returns the tool's description.
func (t *CommandTool) Description() *pluginv1.ToolDescription { return t.spec.Description }
