package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/plugin/schema"
)

// tally makes one finding of several: the worst counts.
type tally struct {
	worst  Finding
	passed int
}

var severity = map[Status]int{"": 0, Skip: 1, Pass: 2, Warn: 3, Fail: 4}

func (t *tally) add(f Finding) {
	if f.Status == Pass {
		t.passed++
	}
	if severity[f.Status] > severity[t.worst.Status] {
		t.worst = f
	}
}

// finding is the worst of them, or the passes counted.
func (t *tally) finding(otherwise Finding) Finding {
	switch {
	case t.worst.Status == "":
		return otherwise
	case t.worst.Status == Pass && t.passed > 1:
		return passed("%s", count(t.passed, "call", "calls"))
	}
	return t.worst
}

// doCalls makes each call that ends by itself, in a process of its own, and the first
// sound one once more after a Describe.
func doCalls(ctx context.Context, b *bench, r *reply) {
	s := &callTallies{}
	described := false
	for i, call := range b.job.Calls {
		if call.Long {
			continue
		}
		f := b.with(ctx, func(c *child) Finding { return b.oneCall(ctx, c, i, call, s, r) })
		s.stream.add(f)
		if f.Status == Pass && !described {
			described = true
			s.stream.add(b.afterDescribe(ctx, call))
		}
	}
	none := skipped("no call ended by itself: give a case with arguments that are quick")
	r.set(ruleStream, s.stream.finding(none))
	unsaid := skipped("no cases are given: say in a file (--cases) what calls should come to")
	if !b.job.Calls[0].MadeUp {
		unsaid = none
	}
	r.set(ruleCases, s.cases.finding(unsaid))
	r.set(ruleStructured, s.structured.finding(skipped("no call succeeded: give a case that does")))
	r.set(ruleLeftovers, s.leftovers.finding(none))
	r.set(ruleQuiet, s.quiet.finding(none))
	if s.flush.worst.Status != "" {
		r.set(ruleFlush, s.flush.worst)
	}
}

type callTallies struct{ stream, cases, structured, leftovers, quiet, flush tally }

// oneCall judges one call; what it returns is about its stream.
func (b *bench) oneCall(ctx context.Context, c *child, i int, call call, s *callTallies, r *reply) Finding {
	var known []int
	for _, p := range b.processes() {
		known = append(known, p.pid)
	}
	o := c.call(ctx, b.request("1", call), call.timeout())
	r.note(i, o)
	switch {
	case o.timedOut && o.stuck:
		r.Wrong = append(r.Wrong, i)
		s.flush.add(failed("let Acknowledge end the wait for the Flush of its seq", "%s: nothing came after its Flush was acknowledged", call.Name))
		return skipped("%s: it waits for an acknowledgement that it had", call.Name)
	case o.timedOut && call.MadeUp:
		r.Running = append(r.Running, i)
		return skipped("%s: still running after %s", call.Name, short(call.timeout()))
	case o.timedOut:
		r.Wrong = append(r.Wrong, i)
		s.cases.add(failed("end sooner, give the case a longer timeout, or say long: true if it runs until it is told to end",
			"%s: no result within %s", call.Name, short(call.timeout())))
		return skipped("%s: still running", call.Name)
	case o.problem() != "":
		return failed(o.fix(), "%s: %s", call.Name, o.problem())
	}
	verdict := judge(call, o)
	if verdict.Status == Fail {
		r.Wrong = append(r.Wrong, i)
	}
	s.cases.add(verdict)
	s.structured.add(b.structured(call, o))
	s.leftovers.add(leftovers(call, b.others(known)))
	s.quiet.add(quiet(c.stdout.String()))
	return passed("%s: %s in %s", call.Name, o.summary(), short(o.took))
}

// afterDescribe makes a call in a process that has described itself, as those do that are
// started before their calls. It has something to say only if that fails.
func (b *bench) afterDescribe(ctx context.Context, call call) Finding {
	return b.with(ctx, func(c *child) Finding {
		if _, problem := c.describe(ctx); problem.Status != "" {
			return Finding{} // that is another rule's
		}
		o := c.call(ctx, b.request("1", call), call.timeout())
		if !o.timedOut && o.problem() == "" {
			return Finding{}
		}
		return failed("serve a Call in a process that has answered a Describe: hosts start processes before their calls, and ask them what they are",
			"%s, in a process that has described itself: %s", call.Name, o.summary())
	})
}

// judge compares with what the case says; of made-up arguments nobody did.
func judge(c call, o outcome) Finding {
	switch {
	case c.MadeUp:
		return Finding{}
	case c.Expect == expectOK && !o.succeeded():
		return failed("correct the tool, or the case", "%s: it should succeed and came to %s", c.Name, o.summary())
	case c.Expect == expectError && o.succeeded():
		return failed("correct the tool, or the case", "%s: it should fail and succeeded", c.Name)
	case c.Text != "" && !strings.Contains(o.text, c.Text) && !strings.Contains(o.result.GetError().GetMessage(), c.Text):
		return failed("correct the tool, or the case", "%s: %q is not in its text, which is %q", c.Name, c.Text, excerpt(o.text))
	}
	return passed("%s: %s", c.Name, o.summary())
}

const structuredFix = "return JSON that satisfies the tool's own output_schema, or correct the schema"

func (b *bench) structured(c call, o outcome) Finding {
	raw := o.result.GetStructured()
	switch {
	case !o.succeeded():
		return Finding{}
	case len(b.job.OutputSchema) == 0 && len(raw) > 0:
		return warned("declare an output_schema, so that hosts know what to expect", "%s: a structured result without an output schema", c.Name)
	case len(b.job.OutputSchema) == 0:
		return passed("no output schema, and no structured result")
	case len(raw) == 0:
		return failed(structuredFix, "%s: it has an output schema and returned no structured result", c.Name)
	}
	if err := satisfies(b.job.OutputSchema, raw); err != nil {
		return failed(structuredFix, "%s: %s: %v", c.Name, excerpt(string(raw)), err)
	}
	return passed("%s", c.Name)
}

// satisfies checks JSON by a JSON Schema.
func satisfies(rules, raw []byte) error {
	resolved, err := schema.Parse(rules)
	if err != nil {
		return err
	}
	value, err := schema.DecodeAny(raw)
	if err != nil {
		return err
	}
	return resolved.Validate(value)
}

func leftovers(c call, list []process) Finding {
	if len(list) == 0 {
		return passed("%s", c.Name)
	}
	var names []string
	for _, p := range list {
		names = append(names, p.name)
	}
	return failed("wait for every process that a call has started before its result: the host kills them anyway, and counts them against the call",
		"%s: %s left behind: %s", c.Name, count(len(list), "process", "processes"), excerpt(strings.Join(names, ", ")))
}

func quiet(stdout string) Finding {
	if stdout == "" {
		return passed("nothing")
	}
	return warned("send what the model is to see as content, and write logs to stderr: stdout is kept apart from the content",
		"it printed %q", excerpt(stdout))
}

const atOnce = 4

// doTogether makes several calls at once in one process.
func doTogether(ctx context.Context, b *bench, r *reply) {
	r.set(ruleTogether, b.with(ctx, func(c *child) Finding {
		var flights []*flight
		var calls []call
		for i := range atOnce {
			call := b.job.Calls[i%len(b.job.Calls)]
			calls = append(calls, call)
			flights = append(flights, c.take(ctx, b.request(fmt.Sprintf("call-%d", i), call), flightOptions{}))
		}
		for i, f := range flights {
			if problem := together(calls[i], f.wait(calls[i].timeout()+b.job.patience())); problem != "" {
				return failed("keep nothing of a call in variables of the process, and let calls wait for nothing of one another",
					"%d calls at once, %s: %s", atOnce, calls[i].Name, problem)
			}
		}
		return passed("%d calls", atOnce)
	}))
}

// together says what went wrong with a call that went well alone.
func together(c call, o outcome) string {
	if o.timedOut {
		return "no result"
	}
	if problem := o.problem(); problem != "" {
		return problem
	}
	if f := judge(c, o); f.Status == Fail {
		return f.Detail
	}
	return ""
}

const argumentsFix = "answer with a Result whose error has kind INVALID_ARGUMENTS, and go on serving"

// doArguments makes calls that no host would let through.
func doArguments(ctx context.Context, b *bench, r *reply) {
	var t tally
	for _, call := range b.job.Calls {
		t.add(b.with(ctx, func(c *child) Finding {
			f := c.take(ctx, b.request("1", call), flightOptions{})
			o := f.wait(call.timeout())
			switch {
			case o.crashed():
				return failed(argumentsFix, "%s: the process ended: %s", call.Name, o.ended)
			case o.timedOut: // so it took them; the kill ends it
				return passed("%s: taken", call.Name)
			case o.problem() != "":
				return failed(argumentsFix, "%s: %s", call.Name, o.problem())
			}
			if _, problem := c.describe(ctx); problem.Status == Fail {
				return failed(argumentsFix, "%s: after that it does not answer: %s", call.Name, problem.Detail)
			}
			return passed("%s: %s", call.Name, o.summary())
		}))
	}
	r.set(ruleArguments, t.finding(skipped("bug: no bad arguments")))
}
