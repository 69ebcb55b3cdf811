package kept

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
	"github.com/toolhost/toolhost/supervisor/internal/filelock"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Line is where the calls of one key wait for their process and find it. A nil Line
// is that of a call with a process of its own.
type Line struct {
	pool *Pool
	sum  string
	keep spec.Keep
	// share is the only one whose calls it serves; empty where it serves all. lock is
	// the file by which its calls have the tool's data; empty where they have none.
	share, lock string
	// ahead: its processes are started before their calls, and serve one each.
	ahead   bool
	gate    *admission.Gate
	has     atomic.Bool  // a process, for Load
	waiting atomic.Int32 // how many are parked, for others

	stop    chan struct{} // closed when there are no calls and processes any more
	renewed chan struct{} // current is another process; holds one

	// Guarded by the pool's mu.
	calls     int
	processes int       // that are not freed yet
	idle      time.Time // since when there are no calls

	mu      sync.Mutex
	over    bool    // nothing of the line is left
	current *stay   // the process that calls share
	parked  []*stay // those that wait for one call each, the oldest first
	timer   *time.Timer
	until   time.Time // how long the process may be idle
	retired bool
	data    data
}

// stay is a process in a line, with the calls at it. The line's mu guards it.
type stay struct {
	process *process.Process
	died    <-chan struct{}
	// here holds each guest with the time at which the launcher is to end the
	// tree for it; zero means not known yet.
	here   map[*Guest]time.Time
	served int
	kept   bool // it lives on for other calls
	spent  bool // and is to serve no further ones
	// ending: the processes end, or have ended. endedBy is the guest that ends
	// them; nil if they did so by themselves.
	ending  bool
	endedBy atomic.Pointer[Guest]
	// claimed: somebody has taken on to free the process.
	claimed bool
	unlock  func() // gives back the tool's data; nil where it does not hold them itself
	// warden listens while it is parked, which it is since then; cpu is what it had
	// used. nil for one that never was.
	warden *warden
	since  time.Time
	cpu    time.Duration
}

// newStay is a process that has just been made.
func (l *Line) newStay(p *process.Process) *stay {
	s := &stay{process: p, died: p.Died(), here: map[*Guest]time.Time{}}
	l.hold()
	p.AtEnd = func() {
		l.ask(func() {
			if s.unlock != nil {
				s.unlock()
			}
		})
		l.unhold()
	}
	p.AtSpent = func() { l.ask(func() { l.spend(s) }) }
	return s
}

func (p *Pool) newLine(sum string, key Key, keep spec.Keep) *Line {
	keep.Idle = min(cmp.Or(keep.Idle, spec.DefaultKeepIdle), process.Forever) // which more can be added to
	limits := p.admission
	limits.Running = maxShared
	return &Line{
		pool: p, sum: sum, keep: keep, share: key.share.Key, lock: key.lock, ahead: strings.HasPrefix(sum, aheadPrefix), gate: admission.New(limits),
		stop: make(chan struct{}), renewed: make(chan struct{}, 1), timer: time.NewTimer(process.Forever),
	}
}

// run is the line's goroutine: it hears of deaths and times.
func (l *Line) run() {
	defer l.timer.Stop()
	for {
		select {
		case <-l.renewed: // another death is waited for
		case <-l.death():
			l.ask(l.findDead)
		case <-l.timer.C:
			l.ask(l.look)
		case <-l.stop:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.over = true
			return
		}
	}
}

// death is that of the process that calls share; nil without one.
func (l *Line) death() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return nil
	}
	return l.current.died
}

// findDead drops the process that calls share if it has died: another may have taken its
// place since a death was heard of.
func (l *Line) findDead() {
	if l.current == nil {
		return
	}
	select {
	case <-l.current.died:
		l.endedByItself()
	default:
	}
}

// serve has calls take a process from now on.
func (l *Line) serve(s *stay) {
	l.current, s.kept = s, true
	l.has.Store(true)
	select {
	case l.renewed <- struct{}{}:
	default:
	}
}

// ask does f, to what the line's mu guards, unless nothing of the line is left. f waits
// for nothing, and asks no more.
func (l *Line) ask(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		f()
	}
}

// Enter waits for a place at the process; leave gives it back.
func (l *Line) Enter(ctx context.Context, shared bool, wait time.Duration) (leave func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	slots := maxShared
	if shared {
		slots = 1
	}
	leave, err = l.gate.Acquire(ctx, admission.Ask{Slots: slots, Wait: wait})
	if _, full := errors.AsType[*admission.OverloadedError](err); full {
		err = outcome.Refuse(api.StatusOverloaded, api.ReasonKeep, errInUse)
	}
	return leave, err
}

// Once says that a process serves one call, for which it is fresh.
func (l *Line) Once() bool { return l != nil && l.keep.Once }

// worn: it has served all the calls that it may.
func (l *Line) worn(s *stay) bool {
	return s.spent || l.keep.Once && s.served > 0 || l.keep.MaxCalls > 0 && s.served >= l.keep.MaxCalls
}

// spend has a process serve no calls but those that are here, and end with the last one.
func (l *Line) spend(s *stay) {
	s.spent = true
	if l.current == s && len(s.here) == 0 {
		l.endIdle()
	}
}

// usable says that another call can have the kept process.
func (l *Line) usable() bool {
	return l.current != nil && !l.current.ending && !l.worn(l.current)
}

// livesOn is false if the processes are to end with a guest that goes.
func (l *Line) livesOn(s *stay) bool {
	return s.kept && !s.ending && !l.retired && !(len(s.here) == 1 && l.worn(s))
}

// endedByItself is for a kept process that has died. Its guests are told, and
// leave.
func (l *Line) endedByItself() {
	s := l.current
	l.drop(s)
	s.ending = true
	l.claim(s)
}

// rest is for a kept process that has become idle.
func (l *Line) rest() {
	l.until = time.Now().Add(l.keep.Idle)
	l.look()
}

// lookAgain is how often an idle process that has a tool's data looks whether another host
// waits for these; the pool hears of its own calls.
const lookAgain = 250 * time.Millisecond

// look ends the kept process if it has been idle for long enough, or has data that somebody
// waits for.
func (l *Line) look() {
	s := l.current
	if s == nil || len(s.here) > 0 {
		return
	}
	left := time.Until(l.until)
	if left <= 0 || s.unlock != nil && filelock.Awaited(l.lock) {
		l.endIdle()
		return
	}
	if s.unlock != nil {
		left = min(left, lookAgain)
	}
	l.timer.Reset(left)
}

// endIdle ends the kept process, unless it is in use, and those that are parked.
func (l *Line) endIdle() {
	if s := l.current; s != nil && len(s.here) == 0 {
		l.drop(s)
		l.claim(s)
	}
	l.drain()
}

// retire is endIdle for a line that no call can join any more.
func (l *Line) retire() {
	l.ask(func() {
		l.retired = true
		l.endIdle()
	})
}

// drop takes a process out of service.
func (l *Line) drop(s *stay) {
	if l.current == s {
		l.current = nil
		l.has.Store(false)
		l.timer.Stop()
	}
}

// claim ends and frees a process without guests, if nobody else does.
func (l *Line) claim(s *stay) {
	if len(s.here) > 0 || s.claimed {
		return
	}
	s.claimed, s.ending = true, true
	l.pool.ending.Go(func() { l.pool.destroy(s) })
}

// needs is how long the launcher's timer is to run. A guest that has just come,
// and has not said yet what it needs, gets what an idle process has.
func (l *Line) needs(s *stay, now time.Time) (most time.Duration) {
	idle := l.keep.Idle + budget.AnswerMargin
	if len(s.here) == 0 {
		return idle
	}
	for _, at := range s.here {
		if at.IsZero() {
			most = max(most, idle)
		} else {
			most = max(most, at.Sub(now))
		}
	}
	return most
}
