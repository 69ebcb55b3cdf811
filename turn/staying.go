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
	if len(t.unraised) > 0 {
		setAside(t.pendings)
	}
}

// canStay says whether a question may outlive its call.
func (p *pending) canStay(t *Turn) bool {
	if p.left == nil || t.reason != "" || t.pendings[p.ID] != p || !p.raised {
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

// setAside takes the questions that stay from people who see one at a time, for the next
// one. Others may still answer them.
func setAside(pendings map[string]*pending) {
	for _, p := range pendings {
		if p.stays && !p.aside {
			p.aside = true
			p.cancel()
		}
	}
}

// firstAside is the question to come back to people first: one for which a call waits
// again, or else the oldest.
func firstAside(pendings map[string]*pending) (first *pending) {
	for _, p := range pendings {
		if p.aside && (first == nil || p.before(first)) {
			first = p
		}
	}
	return first
}

func (p *pending) before(other *pending) bool {
	if p.stays != other.stays {
		return other.stays
	}
	return p.ExpiresAt.Before(other.ExpiresAt)
}

// comeBack puts a question to people again that was set aside.
func (p *pending) comeBack(t *Turn) {
	p.aside = false
	if !p.stays {
		p.ExpiresAt = t.now().Add(p.wait).UTC()
		p.armTimeout(t)
	}
	t.ask(p)
}

// waitAgain has a call wait for a question that stayed open. The time of one that was set
// aside begins when it comes back.
func (p *pending) waitAgain(t *Turn, done func(outcome string, a api.Answer)) {
	p.done, p.stays = done, false
	if !p.aside {
		p.armTimeout(t)
	}
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
