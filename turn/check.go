package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// check decides what can be decided before a call has its place.
func (b *batch) check(e *entry) {
	t := b.t
	switch {
	case t.reason != "":
		b.finish(e, cancelled(e.call, t.reason, turnAborted))
		return
	case t.recorded.err != nil:
		b.finish(e, unjournalled(e.call, t.recorded.err))
		return
	}
	if err := t.hasRoom(); err != nil && !b.isStatus(e) {
		b.finish(e, overloaded(e.call, api.ReasonQuota, notMade(e.call, err.Error()+": end some, and try again")))
		return
	}
	if refused := t.budget.Count(); refused != "" && !b.isStatus(e) { // which tells of the cap
		b.deny(e, api.ReasonTurnBudget, deciderBudget, string(refused))
		return
	}
	if e.call.Problem != "" {
		b.finish(e, invalid(e.call, api.ReasonCall, e.call.Problem))
		return
	}
	if b.isStatus(e) {
		return
	}
	tool, ok := t.tool(e.call.Tool)
	if !ok {
		b.noTool(e)
		return
	}
	e.tool = tool
	b.judge(e)
}

func (b *batch) noTool(e *entry) {
	b.finish(e, invalid(e.call, api.ReasonCall, fmt.Sprintf("there is no tool %q", e.call.Tool)))
}

// judge refuses calls by what is known of the tool. Only the rest is worth a
// Describe, and then a human's time.
func (b *batch) judge(e *entry) {
	t := b.t
	if e.tool.mode() == ModeDeny {
		b.deny(e, api.ReasonPolicy, deciderMode, e.tool.whyDenied())
		return
	}
	if refused := t.budget.Refuses(t.now()); refused != "" && e.tool.Describe != nil {
		b.deny(e, api.ReasonTurnBudget, deciderBudget, string(refused))
		return
	}
	if refused := b.checkRepeat(e); refused {
		return
	}
	switch {
	case e.tool.Describe == nil:
		b.judgeDescribed(e)
	case b.neverApproved(e):
		b.approve(e) // which nobody does
	default:
		b.describe(e)
	}
}

// describe has the call's tool say what it is, beside all else that the batch
// does.
func (b *batch) describe(e *entry) {
	var ctx context.Context
	ctx, e.giveUp = context.WithCancel(context.Background())
	e.stage = stageDescribing
	describe, began := e.tool.Describe, b.t.now()
	b.t.helpers.Go(func() {
		tool, failed := describe(ctx)
		b.t.post(func() { b.described(e, began, tool, failed) })
	})
}

// described goes on with a call whose tool has said what it is, or has not.
func (b *batch) described(e *entry, began time.Time, tool *Tool, failed *api.Result) {
	if e.stage != stageDescribing {
		return
	}
	e.giveUp()
	e.stage = stageReady
	switch {
	case failed != nil:
		own := *failed
		e.since = began // what the result tells of is no waiting
		b.noteTimeout(e, &own)
		b.finish(e, &own)
	case tool == nil:
		b.noTool(e)
	default:
		b.takeDescribed(e, *tool)
	}
	b.advance()
	b.endIfOver()
}

func (b *batch) takeDescribed(e *entry, tool Tool) {
	seen, ok := b.t.viewed(tool)
	if !ok {
		b.noTool(e)
		return
	}
	e.tool = seen
	e.tool.Describe = nil
	b.judgeDescribed(e)
}

// judgeDescribed judges by what the tool itself has claimed, too.
func (b *batch) judgeDescribed(e *entry) {
	var mode Mode
	mode, e.rule = e.tool.modeOf(e.call.Arguments)
	switch {
	case mode == ModeDeny:
		b.denyByMode(e, e.tool, e.rule)
	case mode == ModeAsk:
		b.ask(e)
	}
}

// ask has a human approve a call that can be made.
func (b *batch) ask(e *entry) {
	if check := e.tool.Check; check != nil {
		if err := check(e.call.Arguments, e.call.Meta); err != nil {
			b.finish(e, invalid(e.call, api.ReasonSchema, err.Error()))
			return
		}
	}
	if e.tool.Destructive || b.t.m.config.Program == nil {
		b.askUnlessApproved(e)
		return
	}
	e.stage, e.giveUp = stageDescribing, func() {}
	b.t.helpers.Go(func() {
		program := b.programOf(e)
		b.t.post(func() { b.identified(e, program) })
	})
}

// programOf is the hash of what a call would execute; empty if that is not known, as of an
// executable that workers alone have. An approval from while it was known does not cover the
// call then; one from while it was not goes by the words alone.
func (b *batch) programOf(e *entry) string {
	if b.t.m.config.Program == nil {
		return ""
	}
	program, _ := b.t.m.config.Program(e.tool.Request)
	return program
}

func (b *batch) identified(e *entry, program string) {
	if e.stage != stageDescribing {
		return
	}
	e.stage, e.program = stageReady, program
	b.askUnlessApproved(e)
	b.advance()
	b.endIfOver()
}

func (b *batch) askUnlessApproved(e *entry) {
	if e.tool.Destructive || !b.t.m.config.Approvals.hold(b.approvableOf(e, e.rule, e.program)) {
		b.approve(e)
	}
}

// approve asks a human; the call waits for its place meanwhile.
func (b *batch) approve(e *entry) {
	kind, covered := api.KindConfirm, (*approvable)(nil) // what destroys is confirmed each time
	if !e.tool.Destructive {
		kind, covered = api.KindApproval, new(b.approvableOf(e, e.rule, e.program))
	}
	wait, warning, _ := b.t.wait(kind, e.tool, 0) // no kind of approval fails
	e.noteSetting(warning)
	e.stage = stageAsking
	began := b.t.now()
	wait, e.cut = e.call.Until.cut(wait, began)
	b.t.request(&pending{wait: wait, covered: covered, nth: slices.Index(b.entries, e) + 1, Interaction: api.Interaction{
		CallID: e.key, Tool: e.call.Tool, Kind: kind, Prompt: e.prompt(),
		Arguments: e.call.Arguments, Rule: e.rule, Policy: policyOf(e.tool.Request.Sandbox),
	}}, func(outcome string, a api.Answer) {
		e.waited += b.t.now().Sub(began)
		b.decided(e, outcome, a)
	})
}

func (e *entry) prompt() string {
	prompt := "Run the tool " + e.call.Tool + "?"
	if e.rule != "" {
		prompt += " A rule asks: " + e.rule
	}
	return prompt
}

// policyOf makes a policy what people are shown; nil is the one of the host.
func policyOf(p *supervisor.Policy) *api.Policy {
	if p == nil {
		return nil
	}
	key, _ := json.Marshal(p)
	mode, grants := p.Reaches()
	return &api.Policy{
		Tier: cmp.Or(p.Tier, sandbox.TierNative), Network: mode, Grants: grants,
		Read: append([]string{}, p.Read...), Write: append([]string{}, p.Write...), Key: string(key),
	}
}

func (b *batch) decided(e *entry, outcome string, a api.Answer) {
	if e.stage != stageAsking {
		return
	}
	e.stage = stageReady
	switch {
	case outcome == api.OutcomeAnswered && a.Approve:
		b.revoked(e)
	case outcome == api.OutcomeTimedOut:
		b.deny(e, api.ReasonTimeout, deciderMode, "nobody approved it in time"+e.whyCut())
	case outcome == api.OutcomeHeadless:
		b.deny(e, api.ReasonHeadless, deciderMode, "it needs an approval, and nobody is there to give one")
	case outcome == api.OutcomeCancelled:
		b.finish(e, cancelled(e.call, b.t.reason, turnAborted))
	case outcome == api.OutcomeDismissed:
		b.deny(e, api.ReasonDismissed, deciderMode, "a human was asked for an approval and dismissed the question without an answer")
	case outcome == api.OutcomeFailed && a.Unfit != "":
		b.deny(e, api.ReasonFailed, deciderMode, "it needs an approval, and the answer could not be used: "+a.Unfit)
	case outcome == api.OutcomeFailed:
		b.deny(e, api.ReasonFailed, deciderMode, "it needs an approval, and asking for one has failed")
	default:
		b.deny(e, api.ReasonUser, deciderMode, "a human has denied it")
	}
	b.advance()
	b.endIfOver()
}

// whyCut says what left people less time than there is for such a question.
func (e *entry) whyCut() string {
	if !e.cut {
		return ""
	}
	return ": " + e.call.Until.Why
}

// deniedIn says that a call which was asked about cannot be made any more.
func (c approvable) deniedIn(t *Turn) bool {
	tool, ok := t.tool(c.tool)
	mode, _ := tool.modeOf(c.arguments)
	return !ok || mode == ModeDeny
}

// revoked refuses a call that has waited, if its tool is gone or denied by now; if it is to be asked about by now and was
// not, a human is. It says whether the call cannot go on yet.
func (b *batch) revoked(e *entry) bool {
	tool, ok := b.t.tool(e.call.Tool)
	if !ok {
		b.noTool(e)
		return true
	}
	own, _ := e.tool.modeOf(e.call.Arguments)
	switch mode, rule := tool.modeOf(e.call.Arguments); {
	case mode == ModeDeny:
		b.denyByMode(e, tool, rule)
	case mode == ModeAsk && own != ModeAsk:
		e.tool.Mode, e.tool.Destructive, e.rule = ModeAsk, e.tool.Destructive || tool.Destructive, rule
		b.ask(e)
	}
	return e.stage != stageReady
}

// denyByMode is for a call that the tool's mode denies, or a rule of its own.
func (b *batch) denyByMode(e *entry, tool Tool, rule string) {
	why := tool.whyDenied()
	if rule != "" {
		why = "the operator does not allow it with these arguments, by the rule " + rule
	}
	b.deny(e, api.ReasonPolicy, deciderMode, why)
}

// deny gives a call its refusal, and the audit its record.
func (b *batch) deny(e *entry, reason api.Reason, decider, why string) {
	audit := b.event(e, api.AuditDenied)
	audit.Reason, audit.Decider = reason, decider
	b.t.emit(audit, nil)
	b.finish(e, denied(e.call, reason, decider, why))
}
