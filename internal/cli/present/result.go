// Package present shows people how calls go and what came of them: a tool's
// content, one line of outcome, and a live view while calls run.
package present

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
)

// Content prints what the tool has to show. With people, as for a terminal,
// control characters are made visible.
func Content(w io.Writer, r *api.Result, people bool) error {
	for _, c := range r.Content {
		if err := show(w, contentText(c), people); err != nil {
			return err
		}
	}
	return show(w, string(r.Structured), people)
}

func contentText(c api.Content) string {
	switch c.Type {
	case "json":
		return string(c.JSON)
	case "blob", "resource_link", "resource":
		return Placeholder(c)
	}
	return c.Text
}

// Placeholder stands, in one line, for a blob or a link; for a resource its text
// follows.
func Placeholder(c api.Content) string {
	if c.Type == "resource" && len(c.Data) == 0 {
		return fmt.Sprintf("[%s]\n%s", terminal.OneLine(c.URI), c.Text)
	}
	if c.Type == "blob" {
		kind := cmp.Or(c.MIMEType, "application/octet-stream")
		return fmt.Sprintf("[%s, %s]", terminal.OneLine(kind), size(int64(len(c.Data))))
	}
	return fmt.Sprintf("[%s %s]", terminal.OneLine(c.Name), terminal.OneLine(c.URI))
}

func show(w io.Writer, s string, people bool) error {
	if s == "" {
		return nil // even that would wait for a reader who takes nothing more
	}
	if people {
		s = terminal.Escape(s, false)
	}
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	_, err := io.WriteString(w, s)
	return err
}

// maxLastWords bounds what is shown of a failed tool's stderr.
const maxLastWords = 2 << 10

// WholeError is a tool's error where the line of outcome has only its beginning, and the
// content has it no more than that. Control characters are made visible.
func WholeError(r *api.Result) string {
	if r.OK() || r.ToolError == nil {
		return ""
	}
	said := strings.TrimSpace(r.ToolError.Message)
	if brief(r.ToolError.Message) == terminal.OneLine(said) || text.Holds(r.Text(), said) {
		return ""
	}
	return terminal.Escape(said, false) + "\n"
}

// LastWords is the end of what a tool that failed had to say on stderr, whole lines where
// they are short enough, and its whole error. Control characters are made visible.
func LastWords(r *api.Result) string { return lastOfStderr(r) + WholeError(r) }

func lastOfStderr(r *api.Result) string {
	stderr := r.Output.Stderr
	said, cut := stderr.Head+stderr.Tail, false
	if stderr.DroppedBytes > 0 && stderr.Tail != "" { // the head's last line goes on in what was dropped
		said, cut = stderr.Tail, true
	}
	said = strings.TrimSpace(said)
	if r.OK() || said == "" {
		return ""
	}
	if len(said) > maxLastWords {
		said, cut = said[len(said)-maxLastWords:], true
	}
	if cut {
		if _, rest, found := strings.Cut(said, "\n"); found {
			said = rest
		}
		said = "...\n" + strings.ToValidUTF8(said, "")
	}
	return terminal.Escape(said, false) + "\n"
}

// Outcome says in one line what came of a call, and what it took; its warnings
// follow, each on a line of its own.
func Outcome(r *api.Result) string { return outcome(r) + "\n" + Warnings(r) }

func outcome(r *api.Result) string {
	if NeverBegan(r) {
		return string(r.Status) + ": " + Problem(r)
	}
	if noneRan(r) {
		_, why, _ := strings.Cut(r.Message, "] ")
		return string(r.Status) + ": " + brief(why)
	}
	parts := []string{fmt.Sprintf("%s: %s", r.Status, r.Tool)}
	if r.Status == api.StatusCrashed && r.Reason == api.ReasonLauncher {
		parts = append(parts, "its launcher was killed from outside")
	}
	parts = append(parts, timePhrase(r))
	if waited := r.Timing.HumanWaitMs; waited > 0 {
		parts = append(parts, "waited "+Elapsed(waited)+" for a human")
	}
	if limit := limitPhrase(r); limit != "" {
		parts = append(parts, limit)
	}
	parts = append(parts, endPhrases(r)...)
	if r.Unrecorded {
		parts = append(parts, "not on record")
	}
	if r.Usage.MemoryPeakBytes > 0 {
		parts = append(parts, "cpu "+Elapsed(r.Usage.CPUUserMs+r.Usage.CPUSystemMs), "memory "+size(r.Usage.MemoryPeakBytes))
	}
	return terminal.OneLine(strings.Join(parts, ", "))
}

// noneRan reports whether nothing is known to have run, so that the message is all there
// is to say.
func noneRan(r *api.Result) bool {
	switch r.Status {
	case api.StatusDenied, api.StatusLost:
		return true
	case api.StatusCancelled:
		return r.Timing.ElapsedMs == 0
	case api.StatusStartFailed:
		return r.ToolError == nil && r.Timing.RunMs == 0
	}
	return false
}

// Problem is what a call that failed has to say for itself, in one line.
func Problem(r *api.Result) string {
	if r.ToolError != nil {
		return brief(r.ToolError.Message)
	}
	return brief(r.Message)
}

// maxErrorRunes bounds what is shown of an error; a tool's may have 4 MiB.
const maxErrorRunes = 500

func brief(s string) string { return terminal.OneLine(text.Cut(text.FirstLine(s), maxErrorRunes)) }

// NeverBegan reports whether the result holds an error and nothing else. The
// time that the adapter takes to find that a command cannot be executed does
// not count.
func NeverBegan(r *api.Result) bool {
	switch r.Status {
	case api.StatusProtocolError:
		return r.ToolError != nil && r.Timing.ElapsedMs == 0
	case api.StatusStartFailed, api.StatusInvalidArgs, api.StatusPolicyViolation, api.StatusOverloaded:
		missing := r.Reason == api.ReasonNotFound || r.Reason == api.ReasonNotExecutable
		return r.ToolError != nil && (missing || r.Timing.RunMs == 0)
	}
	return false
}

// Warnings are a result's, each on a line of its own.
func Warnings(r *api.Result) string {
	var b strings.Builder
	for _, warning := range r.Warnings {
		fmt.Fprintln(&b, "warning: "+terminal.OneLine(warning))
	}
	if r.Network != nil && !r.OK() {
		for _, f := range r.Network.Refused[:min(len(r.Network.Refused), maxRefused)] {
			hint := "hint: the network refused " + Refusal(f)
			if grant := f.Grant(); grant != "" {
				hint += ": --net " + grant
			}
			fmt.Fprintln(&b, terminal.OneLine(hint))
		}
		if n := r.Network.Unreachable; n > 0 && r.Network.Mode == "grants" {
			fmt.Fprintf(&b, "hint: the network refused other ports or addresses %d times: --net ADDRESS:PORT grants one\n", n)
		}
		for _, f := range r.Network.Flows[:min(len(r.Network.Flows), maxRefused)] {
			if f.Error != "" {
				fmt.Fprintf(&b, "hint: the connection to %s failed: %s\n", terminal.OneLine(strings.TrimSpace(cmp.Or(f.Name, f.Address)+fmt.Sprintf(" port %d", f.Port))), terminal.OneLine(f.Error))
			}
		}
	}
	if strings.Contains(r.Retry.Hint, api.NoNetwork) {
		fmt.Fprintln(&b, "hint: "+api.NoNetwork+": --net NAME grants it one")
	}
	if r.Usage.PidsLimitHits > 0 && !r.OK() {
		fmt.Fprintf(&b, "hint: the call has reached its limit of %d processes and threads: --pids raises it\n", r.Limits.Pids)
	}
	for _, path := range r.Retry.NotGranted {
		fmt.Fprintln(&b, "hint: "+terminal.OneLine(path)+" was not granted to the call: --read "+terminal.OneLine(text.ShellWord(path)))
	}
	return b.String()
}

// maxRefused bounds the refusals, and the flows, that are shown of a result.
const maxRefused = 3

// longDrainMs is how long the last output of a call that is gone may take to be read
// without being worth a word: only its reader makes it longer.
const longDrainMs = 1000

func timePhrase(r *api.Result) string {
	took := Elapsed(r.Timing.ElapsedMs)
	switch {
	case r.Timing.TimeoutMs == nil:
		return took
	case r.Status == api.StatusTimeout && r.Reason == api.ReasonDeadline:
		phrase := fmt.Sprintf("timed out after %s, gone after %s", Elapsed(*r.Timing.TimeoutMs), Elapsed(r.Timing.ElapsedMs-r.Timing.DrainMs))
		if r.Timing.DrainMs >= longDrainMs {
			phrase += ", answered after " + took
		}
		return phrase
	}
	return took + " of " + Elapsed(*r.Timing.TimeoutMs)
}

// endPhrases say how a call that is not a plain success came to its end.
func endPhrases(r *api.Result) (parts []string) {
	if r.Overran && r.OK() {
		parts = append(parts, "over its soft budget")
	}
	if began, ok := causePhrases[r.Kill.Cause]; ok && r.OK() {
		parts = append(parts, began+", but complete")
	}
	if end := exitPhrase(r); end != "" {
		parts = append(parts, end)
	}
	if r.ToolError != nil && !r.OK() && r.ToolError.Kind != "cancelled" {
		parts = append(parts, brief(r.ToolError.Message))
	}
	switch {
	case r.Kill.Survivors > 0:
		parts = append(parts, fmt.Sprintf("%d processes SURVIVED", r.Kill.Survivors))
	case r.Kill.Stage == "kill" && r.Kill.Reaped == 0: // by the launcher, which counts none
		parts = append(parts, "killed, 0 left")
	case r.Kill.Stage == "kill":
		parts = append(parts, fmt.Sprintf("%s killed, 0 left", count(r.Kill.Reaped, "process", "processes")))
	case r.Kill.Stage == "term" && r.Kill.Reaped > 0: // else the command had ended before
		by := "SIGTERM"
		if r.Usage.OOMKills+r.Usage.AncestorOOMKills > 0 { // the kernel may have been first
			by += " or for want of memory"
		}
		parts = append(parts, fmt.Sprintf("%s ended by %s, 0 left", count(r.Kill.Reaped, "process", "processes"), by))
	}
	if r.Partial {
		parts = append(parts, "kept "+size(r.Output.Content.KeptBytes+r.Output.Stdout.KeptBytes)+" of partial output")
	}
	if dropped := r.Output.Content.DroppedBytes; dropped > 0 {
		parts = append(parts, size(dropped)+" of content cut (output keeps "+size(r.Limits.OutputBytes)+")")
	}
	return parts
}

// causePhrases are what had begun to end a call whose result came all the same.
var causePhrases = map[string]string{
	"deadline":    "stopped at its deadline",
	"total":       "stopped when its stream's time was over",
	"idle":        "stopped for its silence",
	"abort":       "aborted",
	"oom":         "out of memory",
	"cpu":         "stopped at its limit of CPU time",
	"outputTotal": "stopped at its limit of output",
	"protocol":    "stopped for breaking the protocol",
	"collateral":  "killed together with another call",
	"network":     "stopped at a limit of its network",
}

// exitPhrase is how a tool has ended that has not said so itself.
func exitPhrase(r *api.Result) string {
	switch r.Status {
	case api.StatusCrashed, api.StatusNoResult, api.StatusPolicyViolation, api.StatusPidsLimit:
	default:
		return ""
	}
	switch {
	case r.ToolError != nil:
		return ""
	case r.Exit.Signal != "":
		return "died of " + r.Exit.Signal
	case r.Exit.Code != nil:
		return "exit status " + strconv.Itoa(*r.Exit.Code)
	}
	return ""
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Elapsed is a time for people.
func Elapsed(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
