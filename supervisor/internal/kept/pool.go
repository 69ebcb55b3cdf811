// Package kept has tools' processes between calls. Each key, which is all by which a
// process can differ from another, has a line, whose lock guards its processes: what
// calls and the pool do with them, they ask the line to, and a goroutine of its own hears
// when one has died or was idle for long.
//
// A kept process serves several calls, also at once: the line has that process, the
// lock of the tool's data and the list of calls that are served.
//
// A process that is started before its call serves that one alone:
//
//	born    refill.go makes it, with a warden for its only listener; not the line's yet
//	parked  it has answered, and is in the line's list; the launcher has no timer
//	taken   out of the list for good, a call's own; the call's clocks and usage begin
//	gone    killed by its call, or for having died, or because nobody is to have it
//
// One is taken into the list or out of it under the line's lock only, so that two calls
// cannot have the same one, and none has one that is being ended. Only the goroutine
// in refill.go starts any, so that it alone can pass the budget.
package kept

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/tasks"
	"github.com/toolhost/toolhost/supervisor/spec"
)

const (
	// maxShared is how many shared calls a process serves at once.
	maxShared = 8
	// maxKept bounds the kept processes that are idle or in use.
	maxKept = 64
)

// Pool has the lines of all keys.
type Pool struct {
	admission admission.Limits
	tasks     *tasks.Tasks
	ahead     *ahead
	destroy   func(*stay) // kills and frees one that is claimed

	mu     sync.Mutex
	lines  map[string]*Line
	closed bool
	ending sync.WaitGroup // the ends of processes, which Close waits for
}

// NewPool makes one whose calls wait for a process as limits say, with those of source
// started before their calls.
func NewPool(limits admission.Limits, t *tasks.Tasks, source Source) *Pool {
	p := &Pool{admission: limits, tasks: t, destroy: func(s *stay) { s.process.Destroy() }, lines: map[string]*Line{}}
	p.ahead = newAhead(p, source)
	return p
}

// Join takes a place in the line of a key. The call must Part from it.
func (p *Pool) Join(key Key, keep spec.Keep) (*Line, error) { return p.join(key.sum(), key, keep) }

func (p *Pool) join(sum string, key Key, keep spec.Keep) (*Line, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[sum]
	if l == nil {
		if len(p.lines) >= maxKept && !p.evict() {
			return nil, outcome.Refuse(api.StatusOverloaded, api.ReasonKeep, fmt.Errorf("all %d kept processes are in use: call again later", maxKept))
		}
		l = p.newLine(sum, key, keep)
		p.lines[sum] = l
		p.tasks.Run("keep processes", l.run)
	}
	l.calls++
	return l, nil
}

// evict makes room by ending the process that has been idle for longest. The pool
// is locked.
func (p *Pool) evict() bool {
	var oldest *Line
	for _, l := range p.lines {
		if l.calls == 0 && (oldest == nil || l.idle.Before(oldest.idle)) {
			oldest = l
		}
	}
	if oldest == nil {
		return false
	}
	delete(p.lines, oldest.sum)
	p.ending.Go(oldest.retire)
	return true
}

// Part leaves the line; a nil line has no calls.
func (l *Line) Part() {
	if l == nil {
		return
	}
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.calls--
	l.idle = time.Now()
	l.tidy()
}

// hold keeps the line for a process, and unhold ends that.
func (l *Line) hold() {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.processes++
}

func (l *Line) unhold() {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.processes--
	l.tidy()
}

// tidy drops a line without calls and processes. The pool is locked.
func (l *Line) tidy() {
	if l.calls > 0 || l.processes > 0 {
		return
	}
	if l.pool.lines[l.sum] == l {
		delete(l.pool.lines, l.sum)
	}
	close(l.stop)
}

func (p *Pool) all() (lines []*Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		lines = append(lines, l)
	}
	return lines
}

// Lives says whether a process is kept for a key.
func (p *Pool) Lives(key Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[key.sum()]
	return l != nil && l.has.Load()
}

// Load is how many processes are kept.
func (p *Pool) Load() (n int) {
	for _, l := range p.all() {
		if l.has.Load() {
			n++
		}
	}
	return n
}

// EndIdle ends the processes that no call uses at present. It does not wait for
// their end.
func (p *Pool) EndIdle() {
	p.ahead.dropAll(func(s *stock) bool { return !s.fixed })
	p.endIdle()
	p.ahead.wake() // for what is declared
}

func (p *Pool) endIdle() {
	for _, l := range p.all() {
		l.ask(l.endIdle)
	}
}

// Yield has idle processes end that have data which somebody waits for.
func (p *Pool) Yield(lock string) {
	for _, l := range p.all() {
		if l.lock == lock {
			l.ask(l.look)
		}
	}
}

// has says whether calls can still join a line.
func (p *Pool) has(l *Line) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[l.sum] == l
}

// Close ends what is kept, and waits for that. There must be no calls in line.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.ahead.close()
	p.endIdle()
	p.ending.Wait()
}

func (p *Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// errInUse is why a call does not get into a process.
var errInUse = errors.New("other calls use its kept process, or wait for it: call again later")
