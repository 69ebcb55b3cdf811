package supervisor

import (
	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// commandStdout takes what a command writes. Where that is the tool's content,
// the owner gets it as such.
func (c *Call) commandStdout(p []byte) error {
	return c.output.stdoutVeil.Pass(p, c.passCommandStdout)
}

func (c *Call) passCommandStdout(p []byte) error {
	if c.p.Reader != nil {
		in := input{kind: inContent, content: c.p.Reader.Write(p)}
		in.judgeOutput()
		c.send(in)
	}
	return c.output.pass(p, "stdout", c.output.stdout, c.p.Request.Command.Stdout)
}

// endStdout comes after the last of it.
func (c *Call) endStdout() {
	c.output.stdoutVeil.End(c.passCommandStdout)
	if c.p.Reader != nil {
		rest, structured, err := c.p.Reader.End()
		in := input{kind: inContent, content: rest, structured: structured, err: err}
		if reader, ok := c.p.Reader.(OutputWarner); ok {
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
	tool := c.p.CommandTool()
	if tool == nil || tool.Spec().Exit == nil || result.GetError() != nil || result.GetExit().GetSignal() != "" {
		return
	}
	c.exitJudged = true
	c.exitOK, c.exitMessage = tool.Spec().Exit(int(result.GetExit().GetCode()))
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
