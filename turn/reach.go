package turn

import (
	"cmp"
	"context"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// askReach has a human approve a connection to a name that is not granted: once, or for
// as long as any approval can be. It runs on the call's goroutine. A question that is
// open when its call ends stays so for the turn.
func (b *batch) askReach(ctx context.Context, e *entry, q supervisor.Question) supervisor.Answer {
	// What one name was approved for is not approved for another.
	covered := b.approvableOf(e, api.ReachRule(q.Reach), cmp.Or(e.program, b.programOf(e)))
	var approved *api.Answer
	b.t.do(func() { approved = b.approvedReach(covered) })
	if approved != nil {
		return b.yes(covered, *approved)
	}
	wait, warning, err := b.t.wait(api.KindApproval, e.tool, q.Timeout)
	if err != nil {
		return supervisor.Answer{Denied: err.Error()}
	}
	wait, _ = e.call.Until.cut(wait, b.t.now())
	p := b.stayed(e, covered)
	if p == nil {
		p = b.reachQuestion(e, covered, q.Prompt, wait)
	}
	inOrder := func(f func()) bool { return b.afterEvents(e.running, f) }
	s, _ := b.t.await(ctx, inOrder, p, func() bool { return b.hold(e, warning) }, func() { b.goOn(e) })
	if s.outcome == api.OutcomeAnswered && s.answer.Approve {
		return b.yes(covered, s.answer)
	}
	return reply(q, s)
}

// yes is a human's approval as the supervisor takes it, which gives that of one connection
// back if the tool had given up.
func (b *batch) yes(covered approvable, a api.Answer) supervisor.Answer {
	answer := supervisor.Answer{Value: []byte("true"), Always: a.Always}
	if !a.Always {
		answer.Unused = func() { b.t.post(func() { b.keepYes(covered, a) }) }
	}
	return answer
}

func (b *batch) reachQuestion(e *entry, covered approvable, prompt string, wait time.Duration) *pending {
	p := &pending{wait: wait, covered: &covered, Interaction: api.Interaction{
		CallID: e.key, Tool: e.call.Tool, Kind: api.KindApproval, Prompt: prompt, Rule: covered.rule, Policy: policyOf(e.tool.Request.Sandbox),
	}}
	p.known = func() *api.Answer { return b.approvedReach(covered) }
	p.left = func(outcome string, a api.Answer) {
		if outcome == api.OutcomeAnswered && a.Approve && !a.Always {
			b.keepYes(covered, a)
		}
	}
	return p
}

// keepYes keeps the approval of one connection for the next one, which may wait already.
// Several are for as many connections.
func (b *batch) keepYes(covered approvable, a api.Answer) {
	of := covered.reach()
	for _, p := range b.t.pendings {
		if p.known != nil && !p.stays && p.covered.reach() == of {
			b.t.close(p, api.OutcomeAnswered, a)
			return
		}
	}
	b.t.once[of] = append(b.t.once[of], a)
}

// reach is a name that a tool wants.
type reach struct{ tool, rule string }

func (c approvable) reach() reach { return reach{c.tool, c.rule} }

// approvedReach uses an approval that there is of such a connection, or is nil.
func (b *batch) approvedReach(covered approvable) *api.Answer {
	if b.t.m.config.Approvals.hold(covered) {
		return &api.Answer{Approve: true, Always: true}
	}
	of := covered.reach()
	once := b.t.once[of]
	if len(once) == 0 {
		return nil
	}
	b.t.once[of] = once[1:]
	return &once[0]
}

// stayed is the call's own question about a name that stayed open. That of another call
// ends, since it is asked anew.
func (b *batch) stayed(e *entry, covered approvable) (own *pending) {
	b.t.do(func() {
		for _, p := range b.t.pendings {
			if !p.stays || p.Tool != covered.tool || p.Rule != covered.rule {
				continue
			}
			if p.CallID == e.key {
				own = p
				continue
			}
			b.t.close(p, api.OutcomeCancelled, api.Answer{By: "call"})
		}
	})
	return own
}
