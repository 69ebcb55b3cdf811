package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/docker/go-units"
	"golang.org/x/term"

	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// finishCall shows the result and turns it into the exit code.
func finishCall(r *supervisor.Result, flags *callFlags, command bool) error {
	if flags.json {
		out := json.NewEncoder(os.Stdout)
		out.SetEscapeHTML(false)
		if err := out.Encode(r); err != nil {
			return hostError(err)
		}
	} else {
		printContent(os.Stdout, r, term.IsTerminal(int(os.Stdout.Fd())))
	}
	switch {
	case flags.tellsOutcome(r, command):
		printOutcome(os.Stderr, r)
	case !flags.quiet && !flags.json && !flags.events:
		printWarnings(os.Stderr, r)
	}
	if r.OK() && flags.out != "" && r.FilesIncomplete {
		return &exitError{code: exitFailed}
	}
	if code := exitCode(r, command); code != exitOK {
		return &exitError{code: code}
	}
	return nil
}

// tellsOutcome: a command's stderr stays its own unless people read it, or
// something else than the command has decided the outcome.
func (f *callFlags) tellsOutcome(r *supervisor.Result, command bool) bool {
	if f.json || f.events {
		return false
	}
	if f.quiet { // an error is no outcome
		return !r.OK() && neverBegan(r)
	}
	if !command || term.IsTerminal(int(os.Stderr.Fd())) {
		return true
	}
	switch r.Status {
	case supervisor.StatusOK, supervisor.StatusToolError, supervisor.StatusCrashed:
		return false
	}
	return true
}

// printContent prints what the tool has to show. A terminal sees no control
// characters of it.
func printContent(w io.Writer, r *supervisor.Result, people bool) {
	show := func(s string) {
		if people {
			s = terminal.Escape(s, false)
		}
		if s != "" && !strings.HasSuffix(s, "\n") {
			s += "\n"
		}
		fmt.Fprint(w, s)
	}
	for _, c := range r.Content {
		switch c.Type {
		case "text":
			show(c.Text)
		case "json":
			show(string(c.JSON))
		case "blob":
			show(fmt.Sprintf("[%s, %s]", c.MIMEType, units.BytesSize(float64(len(c.Data)))))
		case "resource_link":
			show(fmt.Sprintf("[%s %s]", c.Name, c.URI))
		}
	}
	if len(r.Structured) > 0 {
		show(string(r.Structured))
	}
}

// printOutcome is one line for people: what came of it, and what it took. A
// failed command that said why itself gets no second voice.
func printOutcome(w io.Writer, r *supervisor.Result) {
	defer printWarnings(w, r)
	if neverBegan(r) {
		fmt.Fprintln(w, "toolhost: "+oneLine(firstLine(r.ToolError.Message)))
		return
	}
	if r.Status == supervisor.StatusDenied { // nothing ran that there could be more to say of
		fmt.Fprintln(w, "denied: "+oneLine(strings.TrimPrefix(r.Message, "[DENIED] ")))
		return
	}
	mark := "ok"
	if !r.OK() {
		mark = string(r.Status)
	}
	parts := []string{fmt.Sprintf("%s: %s, %s", mark, r.Tool, timePhrase(r))}
	parts = append(parts, endPhrases(r)...)
	if r.Usage.MemoryPeakBytes > 0 {
		parts = append(parts, "cpu "+elapsed(r.Usage.CPUUserMs+r.Usage.CPUSystemMs), "memory "+units.BytesSize(float64(r.Usage.MemoryPeakBytes)))
	}
	fmt.Fprintln(w, oneLine(strings.Join(parts, ", ")))
}

// neverBegan: there is an error to tell of and nothing else.
func neverBegan(r *supervisor.Result) bool {
	switch r.Status {
	case supervisor.StatusProtocolError:
		return r.ToolError != nil && r.Timing.ElapsedMs == 0
	case supervisor.StatusStartFailed, supervisor.StatusInvalidArgs, supervisor.StatusPolicyViolation, supervisor.StatusOverloaded:
		return r.ToolError != nil && r.Timing.RunMs == 0
	}
	return false
}

func printWarnings(w io.Writer, r *supervisor.Result) {
	for _, warning := range r.Warnings {
		fmt.Fprintln(w, "warning: "+oneLine(warning))
	}
}

func timePhrase(r *supervisor.Result) string {
	took := elapsed(r.Timing.ElapsedMs)
	switch {
	case r.Timing.TimeoutMs == nil:
		return took
	case r.Status == supervisor.StatusTimeout && r.Reason == "deadline":
		return fmt.Sprintf("its %s were over, gone after %s", elapsed(*r.Timing.TimeoutMs), took)
	}
	return took + " of " + elapsed(*r.Timing.TimeoutMs)
}

// endPhrases say how a call that is no plain success came to its end.
func endPhrases(r *supervisor.Result) (parts []string) {
	if r.Overran && r.OK() {
		parts = append(parts, "over its soft budget")
	}
	if r.ToolError != nil && !r.OK() && r.ToolError.Kind != "cancelled" {
		parts = append(parts, firstLine(r.ToolError.Message))
	}
	switch {
	case r.Kill.Survivors > 0:
		parts = append(parts, fmt.Sprintf("%d processes SURVIVED", r.Kill.Survivors))
	case r.Kill.Stage == "kill":
		parts = append(parts, fmt.Sprintf("%s killed, 0 left", count(r.Kill.Reaped, "process", "processes")))
	case r.Kill.Stage == "term":
		parts = append(parts, fmt.Sprintf("%s ended by SIGTERM, 0 left", count(r.Kill.Reaped, "process", "processes")))
	}
	if r.Partial {
		parts = append(parts, "kept "+units.BytesSize(float64(r.Output.Content.KeptBytes+r.Output.Stdout.KeptBytes))+" of partial output")
	}
	if dropped := r.Output.Content.DroppedBytes; dropped > 0 {
		parts = append(parts, units.BytesSize(float64(dropped))+" of content cut")
	}
	return parts
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func elapsed(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// exitCode follows timeout(1), env(1) and the shell.
func exitCode(r *supervisor.Result, command bool) int {
	switch r.Status {
	case supervisor.StatusOK:
		if r.Output.Undelivered && r.Kill.Cause == "" {
			return exitHost
		}
		if r.Output.Undelivered {
			return exitTimeout
		}
		return exitOK
	case supervisor.StatusDenied:
		if r.Reason == turn.OutcomeHeadless {
			return exitHeadless
		}
		return exitFailed
	case supervisor.StatusTimeout:
		return exitTimeout
	case supervisor.StatusCancelled:
		return exitAborted
	case supervisor.StatusInvalidArgs:
		return exitUsage
	case supervisor.StatusStartFailed, supervisor.StatusPolicyViolation:
		return startExitCode(r)
	case supervisor.StatusOverloaded:
		return exitHost
	case supervisor.StatusUnkillable:
		return causeExitCode(r)
	}
	return ownExitCode(r, command)
}

// startExitCode tells what the user named wrongly from what the host could not
// do.
func startExitCode(r *supervisor.Result) int {
	switch r.Reason {
	case "not_found":
		return exitNotFound
	case "not_executable":
		return exitNotExec
	case "tool", "limits", "dir", "command", "sha256", "policy":
		return exitUsage
	case "seccomp":
		return exitFailed
	}
	return exitHost
}

func causeExitCode(r *supervisor.Result) int {
	switch r.Kill.Cause {
	case "deadline", "total", "idle":
		return exitTimeout
	case "abort":
		return exitAborted
	}
	return exitFailed
}

// ownExitCode is that of a death by signal, or a command's own: a tool cannot
// choose one.
func ownExitCode(r *supervisor.Result, command bool) int {
	if r.Status == supervisor.StatusCrashed && r.Exit.Signal != "" {
		if n := sandbox.SignalNumber(r.Exit.Signal); n > 0 {
			return exitSignalBase + int(n)
		}
	}
	if code := r.Exit.Code; command && r.Status == supervisor.StatusToolError && code != nil && *code > 0 && *code < 256 {
		return *code
	}
	return exitFailed
}

// oneLine is text of a tool's in a line of ours.
func oneLine(s string) string {
	return strings.ReplaceAll(terminal.Escape(s, false), "\n", `\n`)
}
