package spec

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/describe"
)

// CommandTool is a tool whose calls run a command. Make one with NewCommandTool. It
// may be used by any number of calls at once.
type CommandTool struct {
	spec CommandSpec
	tool *describe.Tool
}

// CommandSpec describes a tool for a command, which unlike a plugin binary cannot describe
// itself.
type CommandSpec struct {
	// Description has the tool's name, input schema, annotations and hints.
	Description *pluginv1.ToolDescription
	// Build returns the argument vector and the standard input of a call. The
	// arguments match the description's input schema, without a timeout hint.
	// An error says what is wrong with them.
	Build func(arguments json.RawMessage) (argv []string, stdin []byte, err error)
	// Reader returns the reader of one call's standard output; nil leaves the
	// output in Result.Output only.
	Reader func() OutputReader
	// Exit interprets an exit status other than 0: whether it is a success, and a
	// message for the model. If Exit is nil, only 0 is a success.
	Exit func(status int) (ok bool, message string)
	// Shell is set if a shell interprets the command; the receipt shows it.
	Shell bool
	// Source is the tool's definition as JSON, from which another machine's program makes
	// the same tool. If empty, calls stay on this machine. A lasting approval is bound to
	// Source: without one it stays valid whatever Build returns.
	Source json.RawMessage
}

// OutputReader turns the standard output of a command into content while the
// command runs. It is used by one goroutine, and must keep only a bounded part
// of its input.
type OutputReader interface {
	// Write takes the next bytes and returns the content that is now complete.
	Write(p []byte) []api.Content
	// End returns the rest, and the structured result if there is one. An error says why the
	// output is not what the tool declares. io.EOF means that it is empty, which is valid
	// if a status other than 0 means success.
	End() (rest []api.Content, structured json.RawMessage, err error)
}

// OutputWarner is an OutputReader that may warn about valid output. Warning is called
// after End; "" means no warning.
type OutputWarner interface{ Warning() string }

// NewCommandTool returns a tool, or an error if its description or schema is invalid.
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

// Checked returns the checked description.
func (t *CommandTool) Checked() *describe.Tool { return t.tool }

// Spec returns the spec that the tool was made from.
func (t *CommandTool) Spec() CommandSpec { return t.spec }

// Description returns the tool's description.
func (t *CommandTool) Description() *pluginv1.ToolDescription { return t.spec.Description }
