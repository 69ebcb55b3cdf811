package supervisor

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/budget"
)

// guests are the calls that an instance serves. One that is for a single call
// has exactly that one, from its birth on.
type guests struct {
	line *line // of a kept instance

	mu sync.Mutex
	// here holds each guest with the time at which the launcher is to end the
	// tree for it; zero means not known yet.
	here   map[*Call]time.Time
	served int
	// doomed: the processes end, or have ended. doomer is the call that ends
	// them; nil if they did so by themselves.
	doomed bool
	doomer *Call
	// claimed: somebody has taken on to free the instance.
	claimed bool
	idle    *time.Timer // runs while nobody is here
}

func newGuests(first *Call) guests {
	return guests{line: first.line, served: first.counts(), here: map[*Call]time.Time{first: {}}}
}

// attach takes a call in; false if the instance serves no more.
func (i *instance) attach(c *Call) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.doomed || i.worn() {
		return false
	}
	if i.idle != nil {
		i.idle.Stop()
		i.idle = nil
	}
	i.here[c] = time.Time{}
	i.served += c.counts()
	return true
}

// counts returns how many calls this is to its process: 0 for a Describe.
func (c *Call) counts() int {
	if c.p.Describes() {
		return 0
	}
	return 1
}

// worn: it has served as many calls as it may.
func (i *instance) worn() bool {
	keep := i.line.keep
	return keep.Once && i.served > 0 || keep.MaxCalls > 0 && i.served >= keep.MaxCalls
}

// mayLiveOn is false if the processes are to end with the call that asks.
func (i *instance) mayLiveOn() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.livesOn()
}

func (i *instance) livesOn() bool {
	return i.line != nil && !i.doomed && !(len(i.here) == 1 && i.worn())
}

// release lets a call go that has ended well and leaves the processes alive;
// false if they are not to live on after all.
func (i *instance) release(c *Call) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.livesOn() {
		return false
	}
	delete(i.here, c)
	if len(i.here) == 0 {
		i.idle = time.AfterFunc(i.line.keep.Idle, func() { i.line.keeper.end(i) })
	}
	_ = i.rearm()
	return true
}

// doom says that a call ends the processes. Other calls on them go down with
// it; they are told from elsewhere, since owners may doom one another.
func (i *instance) doom(by *Call) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.doomed {
		return
	}
	i.doomed, i.doomer = true, by
	for other := range i.here {
		if other != by {
			i.tasks.Run("report a kill", func() { other.send(input{kind: inCollateral}) })
		}
	}
}

// doomedByOther is true if another call ends the processes.
func (i *instance) doomedByOther(c *Call) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.doomer != nil && i.doomer != c
}

// close records that the processes have ended by themselves. It returns
// whether nobody is here to free them.
func (i *instance) close() (abandoned bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.doomed = true
	return i.line != nil && len(i.here) == 0 && !i.claimed
}

// leave takes a call out whose processes are gone, or given up; true if that
// was the last one, which frees the instance.
func (i *instance) leave(c *Call) (last bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.here, c)
	i.doomed = true
	last = len(i.here) == 0 && !i.claimed
	i.claimed = i.claimed || last
	return last
}

// claim takes an idle instance out of service for good; false if it is in use
// or somebody else has done so.
func (i *instance) claim() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.here) > 0 || i.claimed {
		return false
	}
	i.claimed, i.doomed = true, true
	return true
}

// tell hands an input to every guest. It waits for their owners, so none of
// these may call it.
func (i *instance) tell(in input) {
	for _, c := range i.present() {
		c.send(in)
	}
}

func (i *instance) present() []*Call {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Keys(i.here))
}

// forever is for launchers' timers of calls without a timeout.
const forever = 10 * 365 * 24 * time.Hour

// hold keeps the launcher's own timer back for a guest; 0 is without an end.
func (i *instance) hold(c *Call, left time.Duration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if left == 0 {
		left = forever
	}
	i.here[c] = time.Now().Add(left)
	return i.rearm()
}

// rearm sets the launcher's timer to what the guest needs that needs most. A
// launcher that is gone needs none. An error is logged, too.
func (i *instance) rearm() error {
	err := i.process.SetTimer(i.needs(time.Now()))
	if err == nil || i.process.HasEnded() {
		return nil
	}
	i.logger.Warn("cannot move a launcher's timer: it may end its processes too early", "pid", i.process.PID(), "error", err)
	return err
}

// needs is how long the launcher's timer is to run. A guest that has just come,
// and has not said yet what it needs, gets what an idle process has.
func (g *guests) needs(now time.Time) (most time.Duration) {
	if len(g.here) == 0 {
		return g.idleTime()
	}
	for _, at := range g.here {
		if at.IsZero() {
			most = max(most, g.idleTime())
		} else {
			most = max(most, at.Sub(now))
		}
	}
	return most
}

func (g *guests) idleTime() time.Duration { return g.line.keep.Idle + budget.AnswerMargin }
