package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// driverTimeout ends a driver that hangs: it is more than what a rule's trials
// need beside their calls.
const driverTimeout = 10 * time.Minute

// driverLimits leave room for the binary and everything that it starts.
var driverLimits = supervisor.Limits{MemoryBytes: 1 << 30, Pids: 512, CPUPercent: 200, OutputBytes: 16 << 20}

// drive has the driver try one rule.
func (s *suite) drive(do string, r rule) Finding {
	reply, f := s.send(&job{Do: do})
	if reply == nil {
		return f
	}
	return reply.Findings[r.id]
}

// send runs a driver. Without a reply the finding says why.
func (s *suite) send(j *job) (*reply, Finding) {
	j.Binary, j.Dir, j.Args, j.GraceMs = s.binary, s.o.Dir, s.o.Tool.Args, s.o.Grace.Milliseconds()
	j.PatienceMs = s.o.Patience.Milliseconds()
	raw, err := json.Marshal(j)
	if err != nil {
		return nil, failed("", "bug: %v", err)
	}
	arguments, err := json.Marshal(driverInput{string(raw)})
	if err != nil {
		return nil, failed("", "bug: %v", err)
	}
	policy := s.policy(j.Calls)
	policy.Read = append(policy.Read, s.binary)
	policy.Allow = []string{sandbox.SharedUID}
	result := s.host.Call(s.ctx, supervisor.Request{
		Tool: s.o.Driver, Arguments: arguments, Sandbox: policy, Limits: driverLimits, Timeouts: asks(j.timeout()),
	})
	var out driverOutput
	var r reply
	if !result.OK() || json.Unmarshal(result.Structured, &out) != nil || json.Unmarshal([]byte(out.Reply), &r) != nil {
		return nil, failed("let the binary use no more than a tool may", "the trial was ended: %s", outcomeOf(result))
	}
	return &r, Finding{}
}

// timeout is driverTimeout and as long as the calls may take, one after another, as
// several at once may, too: each with two starts and two waits for its end.
func (j *job) timeout() time.Duration {
	total := driverTimeout
	if len(j.Calls) == 0 {
		return total
	}
	for i := range max(len(j.Calls), atOnce) {
		total += j.Calls[i%len(j.Calls)].timeout() + 2*(j.patience()+beginsWithin+j.grace())
	}
	return total
}

func asks(timeout time.Duration) []budget.Ask {
	return []budget.Ask{{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: timeout, Detail: "conformance"}}
}

// policy is what calls are granted: nothing that could be changed, unless each
// of them is a case.
func (s *suite) policy(calls []call) *supervisor.Policy {
	g := s.o.Cases.Sandbox
	p := &supervisor.Policy{Read: slices.Clone(g.Read)}
	if len(calls) > 0 && !slices.ContainsFunc(calls, func(c call) bool { return c.MadeUp }) {
		p.Write, p.Network = g.Write, g.Network
	}
	if len(p.Read)+len(p.Write) > 0 {
		p.Allow = []string{sandbox.SharedUID}
	}
	return p
}

// outcomeOf is a result in a line.
func outcomeOf(r *api.Result) string {
	text := string(r.Status)
	if r.ToolError != nil {
		text += ": " + firstLine(r.ToolError.Message)
	} else if r.Message != "" {
		text += ": " + firstLine(r.Message)
	}
	if said := strings.TrimSpace(r.Output.Stderr.Head); said != "" && r.ToolError == nil {
		text += "; on stderr: " + excerpt(firstLine(said))
	}
	return excerpt(text)
}

// describeAlone asks for the description as hosts do, with nothing granted. An
// error says that nothing at all can be tried.
func (s *suite) describeAlone() (Finding, error) {
	began := time.Now()
	d, failure := s.host.Describe(s.ctx, supervisor.Request{Tool: s.o.Tool, Sandbox: &supervisor.Policy{}})
	s.starts = time.Since(began)
	if failure == nil {
		s.report.SHA256 = d.SHA256
		if len(d.Warnings) > 0 {
			return warned("stay within what the protocol says of each field: hosts show no more", "%s", excerpt(strings.Join(d.Warnings, "; "))), nil
		}
		return passed("in %s", short(s.starts)), nil
	}
	s.report.SHA256 = failure.SHA256
	if failure.Status == api.StatusStartFailed {
		switch failure.Reason {
		case "tool", "policy", "sandbox", "dir":
			return Finding{}, errors.New(firstLine(failure.ToolError.Message))
		}
	}
	return failed("describe the tools without files, network and variables of the environment: hosts ask in a sandbox with nothing granted",
		"%s", outcomeOf(failure)), nil
}

// request is a supervised call.
func (s *suite) request(tool string, c call, timeout time.Duration) supervisor.Request {
	named := s.o.Tool
	named.Name = tool
	return supervisor.Request{
		Tool: named, Arguments: json.RawMessage(c.Arguments), Sandbox: s.policy([]call{c}),
		Dir: s.o.Dir, Timeouts: asks(timeout), Grace: s.o.Grace,
	}
}

const supervisedFix = "let the tool do with what it is granted, or say in the cases' sandbox what it needs"

// supervised makes each call for real.
func (s *suite) supervised(tool string, calls []call) Finding {
	var t tally
	for _, c := range calls {
		r := s.host.Call(s.ctx, s.request(tool, c, s.starts+c.timeout()))
		t.add(judgeResult(c, r))
	}
	return t.finding(skipped("no call ends by itself"))
}

func judgeResult(c call, r *api.Result) Finding {
	refused := r.Status == api.StatusToolError || r.Status == api.StatusInvalidArgs
	switch {
	case c.MadeUp && (r.OK() || refused), c.Expect == expectError && refused && saysOf(r, c.Text):
		return passed("%s: %s", c.Name, r.Status)
	case c.MadeUp && r.Status == api.StatusTimeout:
		return skipped("%s: still running after %s", c.Name, short(c.timeout()))
	case c.Expect == expectOK && r.OK() && (c.Text == "" || strings.Contains(r.Text(), c.Text)):
		return passed("%s: ok in %s", c.Name, short(time.Duration(r.Timing.ElapsedMs)*time.Millisecond))
	}
	return failed(supervisedFix, "%s: %s", c.Name, outcomeOf(r))
}

// saysOf says whether a text is in what a call came to.
func saysOf(r *api.Result, text string) bool {
	return strings.Contains(r.Text(), text) || strings.Contains(r.Message, text) || r.ToolError != nil && strings.Contains(r.ToolError.Message, text)
}

const partialFix = "send content as it comes, instead of all at the end; Flush makes sure of what must not be lost"

// partial lets the time of long calls run out.
func (s *suite) partial(tool string, calls []call) Finding {
	var t tally
	for _, c := range calls {
		t.add(s.partialCall(tool, c))
	}
	return t.finding(skipped("no call runs for long: give a case with long: true"))
}

// partialCall gives a call more time before it says that nothing came: a busy
// machine is not the tool's fault.
func (s *suite) partialCall(tool string, c call) (f Finding) {
	timeout := time.Second + 2*s.starts
	for range 3 {
		f = judgePartial(c, s.host.Call(s.ctx, s.request(tool, c, timeout)))
		if f.Status != Fail {
			break
		}
		timeout *= 3
	}
	return f
}

func judgePartial(c call, r *api.Result) Finding {
	kept := fmt.Sprintf("%d pieces of content kept", len(r.Content))
	if len(r.Content) == 1 {
		kept = "its content was kept"
	}
	switch {
	case r.OK() && r.Kill.Cause != "":
		return passed("%s: its result came within the grace period and counts, %s", c.Name, kept)
	case r.OK():
		return skipped("%s: it ended before its time was over", c.Name)
	case r.Status != api.StatusTimeout:
		return failed(partialFix, "%s: instead of running out of time it came to %s", c.Name, outcomeOf(r))
	case len(r.Content) > 0:
		return passed("%s: %s", c.Name, kept)
	case c.Partial:
		return failed(partialFix, "%s says partial: true and nothing had come when its time was over", c.Name)
	}
	return skipped("%s: it shows nothing before it ends: if it should, say partial: true in the case", c.Name)
}
