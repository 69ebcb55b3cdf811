package fleet

import (
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/start"
)

// giveUp closes an attempt that is open, or that may start the call with its offer.
func (c *remote) giveUp(a *attempt, why string) {
	a.doubted = c.state.Implied(a.n)
	c.state.Silent(a.n)
	c.refusals = append(c.refusals, refusal{of: a, why: why, silent: true})
	c.void([]int{a.n})
	if a.queued { // it has refused nothing
		c.mayTry(a)
	}
}

// onNotConnected takes the engine's word that nobody got an offer. One that was sent again may
// have got there before, and its place is kept for as long as the worker is heard.
func (c *remote) onNotConnected(a *attempt) {
	switch {
	case c.state.Implied(a.n): // it was sent once
		c.refused(a, "it is not connected", nil)
	case c.state.Open(a.n) && !a.queued:
		c.giveUp(a, "it is not connected")
	}
}

// onForgotten takes it that the worker has nothing on record of an attempt. Without its go
// that will not start.
func (c *remote) onForgotten(a *attempt) {
	switch {
	case c.state.Open(a.n), c.state.Implied(a.n):
		c.giveUp(a, "it has forgotten the offer")
	case c.f.heard(a).moved:
		c.lose(a, api.ReasonWorkerDied, "unknown")
	default: // it has dropped the result, or hears another daemon with this one's key
		c.lose(a, api.ReasonUnreachable, "unknown")
	}
}

// lookAtOffer does what time asks for of an open attempt.
func (c *remote) lookAtOffer(a *attempt) {
	s := c.f.heard(a)
	a.silent = s.silent > suspectAfter
	switch {
	case s.removed:
		c.giveUp(a, errRemoved.Error())
	case s.moved, s.cut, a.silent && !a.queued, s.silent > s.lease: // whose place is gone by then
		c.giveUp(a, "it is not heard any more")
	case !a.queued && now()-a.answered > offerWait:
		c.giveUp(a, fmt.Sprintf("it has not answered within %s", offerWait))
	case !a.queued && now()-a.made > prepareWait:
		c.giveUp(a, fmt.Sprintf("it has not decided within %s", prepareWait))
	case !a.silent && now()-a.sent > askAfter:
		_ = c.sendOffer(a, false) // it is sent again
	}
}

// endOf is when the worker of a call is to begin its end. It holds the deadline itself, and
// ends what is aborted; here it is only seen to it that none waits for ever for one that does
// neither. A result that is on its way is waited for.
func endOf(c *remote) time.Duration {
	end := time.Duration(1<<63 - 1)
	switch ms := c.started.GetTimeoutMs(); {
	case c.aborted > 0:
		end = c.ended
	case c.state.Phase() == start.Committed, c.started == nil:
		end = c.placed + prepareWait
	case ms > 0 && c.open == 0:
		end = c.begun + c.waited + time.Duration(min(ms, 1<<40))*time.Millisecond
	}
	return max(end, c.came)
}

// look does what time asks for.
func (c *remote) look() {
	for _, a := range c.attempts {
		if c.state.Open(a.n) {
			c.lookAtOffer(a)
		}
	}
	n, has := c.state.Chosen()
	if !has {
		c.lookAtLine()
		return
	}
	a := c.attempts[n]
	if c.state.Implied(n) {
		if s := c.f.heard(a); s.moved || s.cut || s.removed || s.silent > suspectAfter || now()-a.answered > offerWait {
			c.giveUp(a, "nothing is heard of it")
			return
		}
		if now()-c.placed > prepareWait {
			c.giveUp(a, fmt.Sprintf("it has not decided within %s", prepareWait))
			return
		}
	}
	c.sendRepliesAgain(a)
	s := c.f.heard(a)
	quiet, since, patience := now()-a.answered, now()-c.sent, s.lease+c.grace()+lostMargin
	switch {
	case s.cut:
		c.lose(a, api.ReasonProtocol, "unknown")
	case s.silent > patience && c.f.leaseOver(a, c.grace()):
		c.lose(a, api.ReasonUnreachable, "no")
	case s.silent > patience+time.Second:
		c.lose(a, api.ReasonUnreachable, "unknown")
	case now()-endOf(c) > patience+overdueMargin:
		c.lose(a, api.ReasonProtocol, "unknown")
	case s.moved && quiet > patience: // its later life does not answer
		c.lose(a, api.ReasonWorkerDied, "unknown")
	case since < goAgain:
	case s.moved, quiet > askAfter, c.aborted > 0 && c.state.Phase() == start.Committed:
		c.ask(a)
	case c.aborted > 0 && c.state.Phase() == start.Running:
		c.sendAbort(a)
	case c.started == nil && c.state.Phase() == start.Running:
		c.ask(a)
	case c.ready == nil && len(c.questions) > 0: // the answer has the key to seal theirs for
		c.ask(a)
	case c.state.Phase() == start.Committed && c.goes < 3 && !c.state.Implied(n):
		c.sendGo(a)
	case c.state.Phase() == start.Committed:
		c.ask(a)
	}
}
