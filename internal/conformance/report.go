package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/text"
)

// Status is what came of a check.
type Status string

// What can come of a check. Only Fail breaks the contract; Warn is allowed and
// not wise; Skip was not tried, and Detail says why.
const (
	Pass Status = "pass"
	Warn Status = "warn"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Finding is what a check has seen.
type Finding struct {
	Status Status `json:"status"`
	// Detail is what happened, Fix what to do about it.
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// Check is one rule, as one tool (or the whole binary) kept it.
type Check struct {
	// ID names the rule, Title says it. Tool is empty for a rule about the
	// binary.
	ID    string `json:"id"`
	Title string `json:"title"`
	Tool  string `json:"tool,omitempty"`
	Finding
	ElapsedMs int64 `json:"elapsedMs"`
}

// Report is what came of all checks, in the order in which they were made.
type Report struct {
	SchemaVersion int     `json:"schemaVersion"`
	Binary        string  `json:"binary"`
	SHA256        string  `json:"sha256"`
	Version       string  `json:"version"`
	ElapsedMs     int64   `json:"elapsedMs"`
	Checks        []Check `json:"checks"`
}

// Count says how many checks ended so.
func (r *Report) Count(status Status) (n int) {
	for _, c := range r.Checks {
		if c.Status == status {
			n++
		}
	}
	return n
}

// Failed are the ids of the rules that were broken, each once, sorted.
func (r *Report) Failed() []string {
	ids := []string{}
	for _, c := range r.Checks {
		if c.Status == Fail {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rule is a check to be made.
type rule struct{ id, title string }

// The rules, in the order in which they are tried.
var (
	ruleHandshake = rule{"handshake", "shakes hands, quickly and before anything else"}
	ruleByHand    = rule{"by-hand", "ends when it is started without a host"}
	ruleDescribe  = rule{"describe", "describes itself, the same each time"}
	ruleNames     = rule{"names", "has legal and distinct tool names"}
	ruleSchemas   = rule{"schemas", "has valid JSON Schemas of objects"}
	ruleClaims    = rule{"claims", "makes no contradictory claims"}
	ruleAlone     = rule{"alone", "describes itself in a sandbox with nothing granted"}
	ruleReplies   = rule{"replies", "takes Cancel, Answer and Acknowledge of a call that is over"}
	ruleUnknown   = rule{"unknown-tool", "refuses a tool that it does not have"}

	ruleStream       = rule{"stream", "numbers its events and ends them with exactly one result"}
	ruleCases        = rule{"cases", "answers as its cases say"}
	ruleStructured   = rule{"structured", "returns what its output schema allows"}
	ruleLeftovers    = rule{"leftovers", "leaves no process behind its result"}
	ruleQuiet        = rule{"quiet", "prints nothing to stdout"}
	ruleTogether     = rule{"together", "runs two calls at once in one process"}
	ruleArguments    = rule{"bad-arguments", "answers bad arguments and does not crash"}
	ruleCancel       = rule{"cancel", "ends within the grace period when it is told to"}
	ruleFlush        = rule{"flush", "waits for Acknowledge after a Flush, and heeds it"}
	ruleBackpressure = rule{"backpressure", "waits for a slow host instead of hoarding"}
	ruleSupervised   = rule{"supervised", "works under a supervisor, in the sandbox"}
	rulePartial      = rule{"partial", "has shown what it had when its time was over"}
)

// toolRules are those about one tool.
var toolRules = []rule{
	ruleStream, ruleCases, ruleStructured, ruleLeftovers, ruleQuiet, ruleTogether, ruleArguments,
	ruleCancel, ruleFlush, ruleBackpressure, ruleSupervised, rulePartial,
}

// Rules are the ids of all rules, in the order in which they are tried.
func Rules() (ids []string) {
	first := []rule{ruleHandshake, ruleByHand, ruleDescribe, ruleNames, ruleSchemas, ruleClaims, ruleAlone, ruleReplies, ruleUnknown}
	for _, r := range append(first, toolRules...) {
		ids = append(ids, r.id)
	}
	return ids
}

func passed(format string, args ...any) Finding {
	return Finding{Status: Pass, Detail: oneLine(fmt.Sprintf(format, args...))}
}

func skipped(format string, args ...any) Finding {
	return Finding{Status: Skip, Detail: oneLine(fmt.Sprintf(format, args...))}
}

func failed(fix, format string, args ...any) Finding {
	return Finding{Status: Fail, Detail: oneLine(fmt.Sprintf(format, args...)), Fix: fix}
}

func warned(fix, format string, args ...any) Finding {
	return Finding{Status: Warn, Detail: oneLine(fmt.Sprintf(format, args...)), Fix: fix}
}

// oneLine keeps stacks and the like from tearing a table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// short is a duration for people.
func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// excerpt is the beginning of what a tool wrote, for a line of a report.
func excerpt(s string) string { return text.Cut(s, 201) }
