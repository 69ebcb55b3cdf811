package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// CommandTool makes a tool of a command line. NewCommandTool makes one; it may
// be used for any number of calls at once.
type CommandTool struct {
	spec CommandSpec
	tool *describedTool
}

// CommandSpec says what a plugin binary would say and do for itself.
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
}

// OutputReader makes content of what a command writes to its standard output,
// while it writes. It is used by one goroutine, and keeps a bounded part of
// what it was given.
type OutputReader interface {
	// Write takes the next bytes and returns the content that is complete.
	Write(p []byte) []api.Content
	// End returns the rest, and the structured result if there is one. An error
	// says why the output is not what the tool promises; one that is io.EOF, that
	// there was none, which is fine with a success's status other than 0.
	End() (rest []api.Content, structured json.RawMessage, err error)
}

// OutputWarner is an OutputReader that may have something to say of the output,
// though it is what the tool promises. It is asked after End; "" is nothing.
type OutputWarner interface{ Warning() string }

// NewCommandTool checks the description and its schema.
func NewCommandTool(spec CommandSpec) (*CommandTool, error) {
	if spec.Description.GetName() == "" || spec.Build == nil {
		return nil, errors.New("a command tool needs a description with a name, and Build")
	}
	tool, err := newDescribedTool(spec.Description)
	if err != nil {
		return nil, fmt.Errorf("input schema of tool %q: %w", spec.Description.GetName(), err)
	}
	return &CommandTool{spec: spec, tool: tool}, nil
}

// Description is the tool's.
func (t *CommandTool) Description() *pluginv1.ToolDescription { return t.spec.Description }

// commandTool is nil for a plugin and for a plain command.
func (c *Call) commandTool() *CommandTool {
	if c.request.Command == nil {
		return nil
	}
	return c.request.Command.Tool
}

// buildCommand makes the command of the arguments, which have been checked.
func (c *Call) buildCommand() error {
	tool := c.commandTool()
	if tool == nil || c.explains {
		return nil
	}
	argv, stdin, err := tool.spec.Build(c.arguments)
	if err == nil && len(argv) == 0 {
		err = errors.New("they make an empty command")
	}
	if err != nil {
		return refuse(api.StatusInvalidArgs, "arguments", err)
	}
	command := *c.request.Command
	command.Argv = append(command.Argv[:1:1], argv[1:]...) // argv[0] is what was looked up
	command.Stdin = bytes.NewReader(stdin)
	c.request.Command, c.arguments = &command, []byte("{}")
	if tool.spec.Reader != nil {
		c.reader = tool.spec.Reader()
	}
	return nil
}

// commandStdout takes what a command writes. Where that is the tool's content,
// the owner gets it as such.
func (c *Call) commandStdout(p []byte) error {
	return c.output.stdoutVeil.pass(p, c.passCommandStdout)
}

func (c *Call) passCommandStdout(p []byte) error {
	if c.reader != nil {
		in := input{kind: inContent, content: c.reader.Write(p)}
		in.judgeOutput()
		c.send(in)
	}
	return c.output.pass(p, "stdout", c.output.stdout, c.request.Command.Stdout)
}

// endStdout comes after the last of it.
func (c *Call) endStdout() {
	c.output.stdoutVeil.end(c.passCommandStdout)
	if c.reader != nil {
		rest, structured, err := c.reader.End()
		in := input{kind: inContent, content: rest, structured: structured, err: err}
		if reader, ok := c.reader.(OutputWarner); ok {
			in.warning = reader.Warning()
		}
		in.judgeOutput()
		c.send(in)
	}
}

func (c *Call) onContent(in input) {
	for _, content := range in.content {
		c.keep(content)
	}
	c.structured, c.outputErr = in.structured, in.err
	c.onJudged(in.judged)
	c.warn(in.warning)
}

// warn adds a warning to the result, unless it is empty.
func (c *Call) warn(text string) {
	if text != "" {
		c.warnings = append(c.warnings, text)
	}
}

// onExitStatus has the tool say what its command's exit status means.
func (c *Call) onExitStatus(result *pluginv1.Result) {
	tool := c.commandTool()
	if tool == nil || tool.spec.Exit == nil || result.GetError() != nil || result.GetExit().GetSignal() != "" {
		return
	}
	c.exitJudged = true
	c.exitOK, c.exitMessage = tool.spec.Exit(int(result.GetExit().GetCode()))
}

// keepLast adds what is only known at the end: the meaning of a success's exit
// status, and the JSON of a failure, which has no structured result.
func (c *Call) keepLast(complete bool) {
	switch {
	case complete && c.exitMessage != "":
		c.keep(api.Content{Type: "text", Text: c.exitMessage})
	case !complete && len(c.structured) > 0:
		c.keep(api.Content{Type: "json", JSON: c.structured})
	}
}
