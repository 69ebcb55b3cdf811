package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/terminal"
)

// finishCall shows the result of a command's one call and turns it into the
// exit code. command: it was exec's.
func finishCall(r *api.Result, flags *callFlags, command bool) error {
	stdout, err := &exit.Stdout{File: os.Stdout}, error(nil)
	if flags.json {
		err = present.JSON(stdout, r, false)
	} else {
		err = present.Content(stdout, r, terminal.IsTerminal(os.Stdout))
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return hostError(err)
	}
	switch {
	case !flags.tellsOutcome(r, command):
		lost := r.Output.Undelivered && flags.exitCode(r, command) == exit.Host // an error is not an outcome
		if (!flags.quiet || lost) && !flags.json && !flags.events {
			flags.tell(present.Warnings(r))
		}
	case present.NeverBegan(r):
		flags.tell(present.WholeError(r) + "toolhost: " + present.Problem(r) + "\n" + present.Warnings(r))
	case command: // what it said on stderr has passed through
		flags.tell(present.Outcome(r))
	default:
		flags.tell(present.LastWords(r) + present.Outcome(r))
	}
	if code := flags.exitCode(r, command); code != exit.OK {
		return exit.With(code, nil)
	}
	if err != nil {
		return stdout.End(err)
	}
	return nil
}

// tell says on stderr what is ours, on lines of its own there.
func (f *callFlags) tell(text string) {
	if text == "" {
		return
	}
	if f.screen != nil && terminal.IsTerminal(os.Stderr) {
		text = f.screen.Fresh() + text
	}
	fmt.Fprint(os.Stderr, text)
}

// tellsOutcome: a command's stderr stays its own unless people read it, or
// something else than the command has decided the outcome.
func (f *callFlags) tellsOutcome(r *api.Result, command bool) bool {
	if f.json || f.events {
		return false
	}
	if f.quiet { // an error is not an outcome
		return !r.OK() && present.NeverBegan(r)
	}
	if !command || terminal.IsTerminal(os.Stderr) {
		return true
	}
	switch r.Status {
	case api.StatusOK, api.StatusToolError, api.StatusCrashed:
		return r.Kill.Cause != "" // or had begun to
	}
	return true
}

// exitCode is the result's, but for a call that is ok and whose files were not all
// copied to --out.
func (f *callFlags) exitCode(r *api.Result, command bool) int {
	if r.OK() && f.out != "" && r.FilesIncomplete {
		return exit.Failed
	}
	return exitCode(r, command)
}

// exitCode follows timeout(1), env(1) and the shell.
func exitCode(r *api.Result, command bool) int {
	if r.Reason == api.ReasonHeadless { // whatever the tool has made of it
		return exit.Headless
	}
	switch r.Status {
	case api.StatusOK:
		if r.Output.Undelivered && r.Kill.Cause == "" {
			return exit.Host
		}
		if r.Output.Undelivered {
			return exit.Timeout
		}
		return exit.OK
	case api.StatusDenied:
		return exit.Failed
	case api.StatusTimeout:
		return exit.Timeout
	case api.StatusCancelled:
		return exit.Aborted
	case api.StatusInvalidArgs:
		return exit.Usage
	case api.StatusStartFailed, api.StatusPolicyViolation:
		if r.Reason == api.ReasonSeccomp {
			return ownExitCode(r, command)
		}
		return startExitCode(r, command)
	case api.StatusOverloaded:
		if r.Reason == api.ReasonData { // in use by another call
			return exit.Failed
		}
		return exit.Host
	case api.StatusUnkillable:
		return causeExitCode(r)
	case api.StatusLost:
		if r.Where == nil { // with its daemon
			return exit.Host
		}
	}
	return ownExitCode(r, command)
}

// startExitCode: only exec has codes for its command.
func startExitCode(r *api.Result, command bool) int {
	switch {
	case command && r.Reason == api.ReasonNotFound:
		return exit.NotFound
	case command && r.Reason == api.ReasonNotExecutable:
		return exit.NotExec
	}
	return exit.Start(r.Reason)
}

func causeExitCode(r *api.Result) int {
	switch r.Kill.Cause {
	case "deadline", "total", "idle":
		return exit.Timeout
	case "abort":
		return exit.Aborted
	}
	return exit.Failed
}

// ownExitCode is that of a death by signal, or a command's own: a tool cannot
// choose one.
func ownExitCode(r *api.Result, command bool) int {
	died := r.Status == api.StatusCrashed || r.Status == api.StatusPolicyViolation
	if died && r.Exit.Signal != "" {
		if n := signals.Number(r.Exit.Signal); n > 0 {
			return exit.SignalBase + int(n)
		}
	}
	if code := r.Exit.Code; command && r.Status == api.StatusToolError && code != nil && *code > 0 && *code < 256 {
		return *code
	}
	return exit.Failed
}
