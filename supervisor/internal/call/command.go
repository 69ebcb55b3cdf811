package call

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/signals"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
)

// wordCommand puts into words what the command adapter says in numbers: the
// signal that has ended the command, and why it could not be started.
func (o *owner) wordCommand(result *pluginv1.Result) {
	if o.p.Request.Command == nil {
		return
	}
	if exit := result.GetExit(); exit.GetSignal() != "" {
		n, _ := strconv.Atoi(exit.GetSignal())
		exit.Signal = signals.Name(syscall.Signal(n))
	}
	if e := result.GetError(); e != nil {
		n, _ := strconv.Atoi(e.GetMessage())
		e.Message = cannotStart(e.GetKind(), o.p.Argv()[0], syscall.Errno(n)).Error()
	}
}

func cannotStart(kind pluginv1.ToolError_Kind, command string, errno syscall.Errno) error {
	switch {
	case kind == pluginv1.ToolError_KIND_CANCELLED:
		return errors.New("the process was told to end (SIGTERM)")
	case kind != pluginv1.ToolError_KIND_COMMAND_NOT_FOUND:
		return fmt.Errorf("cannot execute %s: %w", command, whyNot(errno))
	case strings.Contains(command, "/"):
		return fmt.Errorf("no command at %s: correct the path, or grant the call to read it", command)
	}
	return fmt.Errorf("no command %q in PATH: install it below /usr, or give its path", command)
}

// whyNot says why a file that is there cannot be executed, and what to do.
func whyNot(errno syscall.Errno) error {
	switch errno {
	case syscall.ENOENT:
		return errors.New("the interpreter that it names in its first line, or its loader, is not there: install that below /usr, or grant the call to read it")
	case syscall.ENOEXEC:
		return errors.New("it is neither a program of this machine nor a script with #!: build it for this architecture, or name its interpreter before it")
	case syscall.EISDIR:
		return errors.New("it is a folder: name the executable in it")
	case syscall.EACCES, syscall.EPERM:
		return errors.New("permission denied: chmod +x it, or name its interpreter before it")
	case syscall.E2BIG:
		return prepare.ErrTooLong
	}
	return errno
}

// onExitStatus has the tool say what its command's exit status means.
func (o *owner) onExitStatus(result *pluginv1.Result) {
	tool := o.p.CommandTool()
	if tool == nil || tool.Spec().Exit == nil || result.GetError() != nil || result.GetExit().GetSignal() != "" {
		return
	}
	o.found.ExitJudged = true
	o.found.ExitOK, o.found.ExitMessage = tool.Spec().Exit(int(result.GetExit().GetCode()))
}

// keepLast adds what is only known at the end: the meaning of a success's exit
// status, and the JSON of a failure, which has no structured result.
func (o *owner) keepLast() {
	switch complete := o.found.Complete(); {
	case complete && o.found.ExitMessage != "":
		o.content.keep(api.Content{Type: "text", Text: o.found.ExitMessage})
	case !complete && len(o.commandStructured()) > 0:
		o.content.keep(api.Content{Type: "json", JSON: o.commandStructured()})
	}
	o.content.end()
}

// commandStructured is what a command's output was read as; nil for a plugin.
func (o *owner) commandStructured() json.RawMessage {
	if o.p.Reader == nil {
		return nil
	}
	return o.found.Structured
}
