package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

func (c *remote) isOpen() bool {
	return slices.ContainsFunc(c.attempts, func(a *attempt) bool { return c.state.Open(a.n) })
}

// unanswered says whether an offer may still find a slot at once.
func (c *remote) unanswered() bool {
	return slices.ContainsFunc(c.attempts, func(a *attempt) bool { return c.state.Open(a.n) && !a.queued })
}

// silent are the workers that keep places for the call, and are not heard: as many others
// may be asked. The places are there when the workers are heard again within the lease.
func (c *remote) silent() (n int) {
	for _, a := range c.attempts {
		if a.queued && a.silent && c.state.Open(a.n) {
			n++
		}
	}
	return n
}

// onQueued takes it that a worker has no slot, and keeps a place for the call.
func (c *remote) onQueued(a *attempt, q *fleetv1.Queued) {
	if !c.state.Open(a.n) {
		return
	}
	a.queued = true
	c.f.mu.Lock()
	p := c.f.peers[a.id.Worker]
	p.beat.Free, p.offered = -q.GetWaiting(), 0
	c.f.mu.Unlock()
	if !c.enterLine(aSlot) {
		places, _ := c.f.config.Supervisor.Admission.Line()
		c.refused(a, fmt.Sprintf("it has no slot, and %d calls wait for workers already", places), nil)
		c.void([]int{a.n})
	}
}

// awaited is what a call in the line waits for from workers. It may wait for this machine
// beside that, whatever it is.
type awaited uint8

const (
	aSlot  awaited = iota // of a worker that keeps a place for it, if one does
	aPlace                // at a worker, which had none
)

// enterLine takes one of the places for calls that wait, and notes for what; false if all
// are taken.
func (c *remote) enterLine(awaits awaited) bool {
	places, _ := c.f.config.Supervisor.Admission.Line()
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if c.waits {
		c.awaits = awaits
	} else if len(c.f.line) < places {
		c.waits, c.awaits, c.here = true, awaits, c.mayRunHere()
		at := slices.IndexFunc(c.f.line, func(other *remote) bool { return other.began > c.began })
		if at < 0 {
			at = len(c.f.line)
		}
		c.f.line = slices.Insert(c.f.line, at, c)
	}
	return c.waits
}

// waitsForHere has a call that no worker takes wait for this machine behind those that do.
// Where these take all places it is turned away.
func (c *remote) waitsForHere() bool {
	switch {
	case c.aborted > 0 || c.failed != nil || !c.mayRunHere():
		return false
	case c.waits:
		return true
	case c.f.waitHere(nil) == 0:
		return false
	}
	c.turnedAway = !c.joins(aSlot)
	return !c.turnedAway
}

// joins enters the line, or says why not.
func (c *remote) joins(awaits awaited) bool {
	in := c.enterLine(awaits)
	if !in {
		places, _ := c.f.config.Supervisor.Admission.Line()
		c.refusals = append(c.refusals, refusal{why: fmt.Sprintf("%d calls wait already", places)})
	}
	return in
}

// waitsForPlace has a call wait that all workers were too busy for, or that has lost its
// place with them, as long as it may be offered again.
func (c *remote) waitsForPlace() bool {
	return c.aborted == 0 && c.failed == nil && len(c.attempts) < start.MaxAttempts && c.later() && c.joins(aPlace)
}

// mayAsk says whether workers are to be asked: by a call that waits for a place once there
// may be one, behind those that have waited longer.
func (c *remote) mayAsk() bool {
	if !c.waits || c.awaits != aPlace {
		return true
	}
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	workers := c.f.places()
	i := slices.IndexFunc(c.f.line, func(other *remote) bool { return other.awaits == aPlace && other.where.HasPlace(workers) })
	if i < 0 || c.f.line[i] != c {
		return false
	}
	c.awaits, c.tried = aSlot, nil
	return true
}

func (c *remote) leaveLine() {
	if c.waits {
		c.waits = false
		c.f.mu.Lock()
		defer c.f.mu.Unlock()
		c.f.line = slices.DeleteFunc(c.f.line, func(other *remote) bool { return other == c })
	}
}

// waitHere are the calls before c that wait for a slot of this machine as well; all where c
// is nil.
func (f *Fleet) waitHere(c *remote) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, other := range f.line {
		if other == c {
			break
		}
		if other.here {
			n++
		}
	}
	return n
}

// lookAtLine ends the wait of a call that takes too long, or that this machine has a slot
// for.
func (c *remote) lookAtLine() {
	_, most := c.f.config.Supervisor.Admission.Line()
	switch {
	case !c.waits:
	case now()-c.began > most:
		c.refusals = append(c.refusals, refusal{why: c.f.waitedInVain(c.where, most)})
		c.turnedAway = true
		c.void(c.state.Stop())
	case c.here:
		if release, ok := c.f.slotHere(c, &c.request); ok {
			c.release = release
			c.void(c.state.Stop())
		}
	}
}

// mayRunHere says whether the call can be made on this machine once no worker has it.
func (c *remote) mayRunHere() bool { return len(c.where) == 0 && c.f.local() && !c.state.Doubted() }

// never takes a worker's word that it has not started the call, and never will. One that had
// no slot, or whose place in the line is gone, may be asked again.
func (c *remote) never(a *attempt, n *fleetv1.Never) {
	if a.queued || c.state.Implied(a.n) && n.GetWhy() == fleetv1.Why_WHY_BUSY {
		c.state.Refused(a.n)
		a.over.Store(true)
		c.mayTry(a)
		return
	}
	kept := &fleetv1.Never{Why: n.GetWhy()} // of a busy one there may be many
	if n.GetWhy() == fleetv1.Why_WHY_CANNOT && len(n.Result) <= portable.MaxRefusal {
		kept.Result = n.Result
	}
	c.refused(a, whyNever(n), kept)
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

// grace is the call's, or the most that one can have while that is not known.
func (c *remote) grace() time.Duration {
	if c.started == nil {
		return budget.MaxGrace
	}
	return time.Duration(min(max(c.started.GraceMs, 0), budget.MaxGrace.Milliseconds())) * time.Millisecond
}
