package turn

import (
	"time"

	"github.com/toolhost/toolhost/api"
)

// maxStaying bounds the questions that stay open though nobody waits for them.
const maxStaying = maxRaised

// endWithCall ends a question for which its call no longer waits, or has it stay open
// for the turn, whose clock goes on.
func (t *Turn) endWithCall(p *pending) {
	by := api.Answer{By: "call"}
	if p.stays {
		return
	}
	if !p.canStay(t) {
		t.close(p, api.OutcomeCancelled, by)
		return
	}
	p.done(api.OutcomeCancelled, by)
	p.done, p.stays = p.left, true
	p.timer.Stop()
	t.waiting(t.budget.Resumed)
}

// canStay says whether a question may outlive its call. One at a time, it would keep the
// next one from people.
func (p *pending) canStay(t *Turn) bool {
	if p.left == nil || t.reason != "" || t.pendings[p.ID] != p || !p.raised || len(t.unraised) > 0 {
		return false
	}
	staying := 0
	for _, other := range t.pendings {
		if other.stays {
			staying++
		}
	}
	return staying < maxStaying
}

// makeRoom ends the questions that stay, for the next one.
func makeRoom(t *Turn) {
	for _, p := range t.pendings {
		if p.stays {
			t.close(p, api.OutcomeCancelled, api.Answer{By: "call"})
		}
	}
}

// waitAgain has a call wait for a question that stayed open.
func (p *pending) waitAgain(t *Turn, done func(outcome string, a api.Answer)) {
	p.done, p.stays = done, false
	p.armTimeout(t)
	t.waiting(t.budget.Waiting)
}

// waiting tells the turn's clocks that a wait for a human begins or ends.
func (t *Turn) waiting(tell func(now time.Time)) {
	tell(t.now())
	t.armDeadline()
	t.armStream()
}

// armTimeout ends a question that nobody answers in time.
func (p *pending) armTimeout(t *Turn) {
	p.timer = time.AfterFunc(p.wait, func() { t.post(func() { t.close(p, api.OutcomeTimedOut, api.Answer{By: "timeout"}) }) })
}
