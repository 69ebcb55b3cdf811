package kept

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor/internal/process"
)

// Caller is a call at a process.
type Caller interface {
	process.Listener
	// Collateral says that another call ends the processes.
	Collateral()
}

// Guest is a call's part in a process: all of one that no other call can have, or
// a place at one that is kept. It serves the owner of the call as its tree.
type Guest struct {
	*process.Process
	caller Caller
	line   *Line // nil for a process of the call's own
	stay   *stay
	counts int
	// before is what the process had used when the call came, if it had served
	// others; begin is that of one which was parked.
	before cgroup.Usage
	begin  *cgroup.Baseline
	reused bool
}

// First makes the guest for whom a process has been started. counts is how many
// calls this is to it: 0 for a Describe.
func (l *Line) First(p *process.Process, c Caller, counts int) *Guest {
	g := &Guest{Process: p, caller: c, line: l, counts: counts}
	if l == nil {
		return g
	}
	s := l.newStay(p)
	s.here[g], s.served = time.Time{}, counts
	g.stay = s
	return g
}

// Take attaches a call to a process that has been kept or started for it. It returns
// nil if the call must start its own.
func (l *Line) Take(c Caller, counts int) *Guest {
	switch {
	case l == nil:
		return nil
	case l.ahead:
		return l.takeParked(c)
	}
	return l.takeKept(c, counts)
}

func (l *Line) takeKept(c Caller, counts int) (g *Guest) {
	l.ask(func() {
		if !l.usable() {
			return
		}
		s := l.current
		if !s.process.Join(c) {
			l.endedByItself()
			return
		}
		l.timer.Stop()
		g = &Guest{Process: s.process, caller: c, line: l, stay: s, counts: counts, reused: true}
		s.here[g] = time.Time{}
		s.served += counts
	})
	if g == nil {
		return nil
	}
	var err error
	if g.before, err = g.Process.Usage(); err != nil {
		g.Warn("cannot read what a kept process has used", err)
	}
	return g
}

// Share lets other calls have the processes, which are connected now. Where two
// calls have started one each at once, the later one is used up by its own. A
// process that is kept has the tool's data for as long as it lives, as its call has
// them now.
func (g *Guest) Share(locked bool) {
	if g.line == nil || g.reused {
		return
	}
	l, s, closed := g.line, g.stay, g.line.pool.isClosed()
	l.ask(func() {
		if closed || s.ending || l.usable() {
			return
		}
		l.serve(s)
		if tell := l.keep.Notices; tell != nil && !l.keep.Once {
			s.process.Watch(func(method string, params json.RawMessage) { tell(l.share, method, params) })
		}
		if locked {
			l.data.holders++
			s.unlock = l.unlock
		}
	})
}

// SetTimer keeps the launcher's timer back for this call; 0 is without an end.
func (g *Guest) SetTimer(left time.Duration) (err error) {
	left = cmp.Or(left, process.Forever)
	if g.line == nil {
		return g.Process.SetTimer(left)
	}
	g.line.ask(func() {
		g.stay.here[g] = time.Now().Add(left)
		err = g.line.rearm(g.stay)
	})
	return err
}

// rearm sets the launcher's timer to what the guest needs that needs most.
func (l *Line) rearm(s *stay) error { return s.process.SetTimer(l.needs(s, time.Now())) }

// Wear has the processes serve no call but those that are here.
func (g *Guest) Wear() {
	if g.line != nil {
		g.line.ask(func() { g.line.spend(g.stay) })
	}
}

// MayLiveOn is false if the processes are to end with the call.
func (g *Guest) MayLiveOn() (may bool) {
	if g.line == nil {
		return false
	}
	g.line.ask(func() { may = g.line.livesOn(g.stay) })
	return may
}

// Terminate and Kill take the other calls at the process with it.
func (g *Guest) Terminate() (pids []int, err error) {
	g.end()
	return g.Process.Terminate()
}

// Kill sends SIGKILL to all processes.
func (g *Guest) Kill() error {
	g.end()
	return g.Process.Kill()
}

// end says that this call ends the processes. The others hear of it on goroutines
// of their own, since owners may end one another.
func (g *Guest) end() {
	if g.line == nil {
		return
	}
	g.line.ask(func() {
		s := g.stay
		if s.ending {
			return
		}
		s.ending = true
		s.endedBy.Store(g)
		g.line.drop(s)
		for other := range s.here {
			if other != g {
				g.line.pool.tasks.Run("report a kill", other.caller.Collateral)
			}
		}
	})
}

// EndedByAnother says that another call ends the processes.
func (g *Guest) EndedByAnother() bool {
	if g.stay == nil {
		return false
	}
	by := g.stay.endedBy.Load()
	return by != nil && by != g
}

// Instance says whether the process was started for this call, or before it, or has
// served others.
func (g *Guest) Instance() string {
	switch {
	case g.begin != nil:
		return api.InstancePrestarted
	case g.reused && !g.line.Once():
		return api.InstanceReused
	}
	return api.InstanceFresh
}

// Release leaves the processes alive for other calls, if they can have them.
func (g *Guest) Release() {
	released := false
	g.line.ask(func() { released = g.line.release(g) })
	if !released && g.goAway() {
		g.Destroy()
	}
}

func (l *Line) release(g *Guest) bool {
	s := g.stay
	if !l.livesOn(s) {
		return false
	}
	delete(s.here, g)
	s.process.Part(g.caller)
	_ = l.rearm(s)
	if len(s.here) == 0 {
		l.rest()
	}
	return true
}

// Leave is for processes that are gone or, with survivors, were given up. The last
// call at them frees them. freed is closed when nothing of them is left.
func (g *Guest) Leave(survivors bool) (freed <-chan struct{}) {
	switch last := g.goAway(); {
	case !last:
	case survivors:
		g.FreeLater()
	default:
		g.Free()
	}
	return g.Freed()
}

// goAway is true for the last one, who frees the process.
func (g *Guest) goAway() (last bool) {
	g.Part(g.caller)
	if g.line == nil {
		return true
	}
	g.line.ask(func() {
		s := g.stay
		g.line.drop(s)
		delete(s.here, g)
		s.ending = true
		last = len(s.here) == 0 && !s.claimed
		s.claimed = s.claimed || last
	})
	return last
}

// CPU, Usage and Current are this call's own.
func (g *Guest) CPU() (time.Duration, error) {
	used, err := g.Process.CPU()
	return used - g.cpuBefore(), err
}

func (g *Guest) cpuBefore() time.Duration {
	if g.begin != nil {
		return g.begin.CPU()
	}
	return g.before.CPUUser + g.before.CPUSystem
}

// Usage is what has been used since the call came.
func (g *Guest) Usage() (cgroup.Usage, error) {
	usage, err := g.Process.Usage()
	switch {
	case g.begin != nil:
		usage = usage.SinceBegin(*g.begin)
	case g.reused:
		usage = usage.Since(g.before)
	}
	return usage, err
}

// Current is what is used at this moment, and the CPU time since the call came.
func (g *Guest) Current() (cgroup.Current, error) {
	now, err := g.Process.Current()
	now.CPU = max(now.CPU-g.cpuBefore(), 0)
	return now, err
}
