package fleet

import (
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/api"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

func (c *remote) isOpen() bool {
	return slices.ContainsFunc(c.attempts, func(a *attempt) bool { return c.state.Open(a.n) })
}

// unanswered says whether an offer may still find a slot at once.
func (c *remote) unanswered() bool {
	return slices.ContainsFunc(c.attempts, func(a *attempt) bool { return c.state.Open(a.n) && !a.queued })
}

// isQueued takes it that a worker has no slot, and keeps a place for the call.
func (c *remote) isQueued(a *attempt, q *fleetv1.Queued) {
	if !c.state.Open(a.n) {
		return
	}
	a.queued = true
	c.f.mu.Lock()
	p := c.f.peers[a.id.Worker]
	p.beat.Free, p.offered = -q.GetWaiting(), 0
	c.f.mu.Unlock()
	if !c.enterLine() {
		places, _ := c.f.config.Supervisor.Admission.Line()
		c.refused(a, fmt.Sprintf("it has no slot, and %d calls wait for workers already", places))
		c.void([]int{a.n})
	}
}

// enterLine takes one of the places for calls that wait; false if all are taken.
func (c *remote) enterLine() bool {
	places, _ := c.f.config.Supervisor.Admission.Line()
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if !c.waits && c.f.waiting < places {
		c.waits = true
		c.f.waiting++
	}
	return c.waits
}

func (c *remote) leaveLine() {
	if c.waits {
		c.waits = false
		c.f.mu.Lock()
		defer c.f.mu.Unlock()
		c.f.waiting--
	}
}

// lookAtLine ends the wait of a call that takes too long, or that this machine has a slot
// for.
func (c *remote) lookAtLine() {
	_, most := c.f.config.Supervisor.Admission.Line()
	switch {
	case !c.waits:
	case now()-c.began > most:
		c.stopWaiting(fmt.Sprintf("no slot has become free within %s", most))
	case c.mayRunHere() && c.f.freeHere() > 0:
		c.stopWaiting("this machine has a slot")
	}
}

func (c *remote) stopWaiting(why string) {
	c.refusals = append(c.refusals, why)
	c.void(c.state.Stop())
}

// mayRunHere says whether the call can be made on this machine once no worker has it.
func (c *remote) mayRunHere() bool { return len(c.where) == 0 && c.f.local() && !c.state.Doubted() }

// never takes a worker's word that it has not started the call, and never will. One that had
// no slot, or whose place in the line is gone, may be asked again.
func (c *remote) never(a *attempt, n *fleetv1.Never) {
	if a.queued || c.state.Implied(a.n) && n.GetWhy() == fleetv1.Why_WHY_BUSY {
		c.state.Refused(a.n)
		c.mayTry(a)
		return
	}
	c.refused(a, whyNever(n))
	c.nevers = append(c.nevers, n)
}

// mayTry lets a worker be asked again.
func (c *remote) mayTry(a *attempt) {
	c.tried = slices.DeleteFunc(c.tried, func(name string) bool { return name == a.id.Worker })
}

func whyNever(n *fleetv1.Never) string {
	if n.Detail == "" {
		return "it has not started it"
	}
	return api.Cut(n.Detail, 500)
}
