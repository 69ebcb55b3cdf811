package turn

import (
	"context"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// reachRule is what an approval of a connection names in the place of an
// operator's rule: what one name was approved for is not approved for another.
func reachRule(to string) string { return "network " + to }

// askReach has a human approve a connection to a name that is not granted: once,
// or for the rest of the turn. It runs on the call's goroutine.
func (b *batch) askReach(ctx context.Context, e *entry, q supervisor.Question) supervisor.Answer {
	covered := b.approvableOf(e, reachRule(q.Reach))
	if b.t.m.config.Approvals.hold(covered) {
		return supervisor.Answer{Value: []byte("true"), Always: true}
	}
	wait, warning, err := b.t.wait(api.KindApproval, e.tool, q.Timeout)
	if err != nil {
		return supervisor.Answer{Denied: err.Error()}
	}
	wait, _ = e.call.Until.cut(wait, b.t.now())
	i := api.Interaction{
		CallID: e.key, Tool: e.call.Tool, Kind: api.KindApproval, Prompt: q.Prompt, Rule: covered.rule, Policy: policyOf(e.tool.Request.Sandbox),
	}
	inOrder := func(f func()) bool { return b.afterEvents(e.running, f) }
	s, _ := b.t.await(ctx, inOrder, i, &covered, wait, func() bool { return b.hold(e, warning) }, func() { b.goOn(e) })
	answer := reply(q, s)
	answer.Always = s.outcome == api.OutcomeAnswered && s.answer.Approve && s.answer.Always
	return answer
}
