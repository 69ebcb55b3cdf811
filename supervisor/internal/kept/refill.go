package kept

import (
	"errors"
	"slices"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/spec"
)

const (
	// lookEvery is how often parked processes, and what they were started for, are
	// looked at.
	lookEvery = 10 * time.Second
	// While it is parked a process may use one part of parkedParts of a CPU, and
	// parkedBurst beside that.
	parkedParts, parkedBurst = 20, time.Second
	// settleTime is left to a call that has just taken one: its answer comes before
	// the next start. That then waits for the starts of calls to be over, and for a
	// CPU, but no longer than this.
	settleTime                 = 5 * time.Millisecond
	startPatience, cpuPatience = 2 * time.Second, 250 * time.Millisecond
)

var (
	errDiedParked = errors.New("it ended, or was too busy, before a call took it")
	errTooLarge   = errors.New("it has more memory than the budget of parked processes has left")
)

// run is the goroutine that starts processes.
func (a *ahead) run() {
	defer close(a.over)
	look, retry := time.NewTicker(lookEvery), time.NewTimer(process.Forever)
	defer look.Stop()
	defer retry.Stop()
	for {
		select {
		case <-a.wakes:
		case <-retry.C:
		case <-look.C:
			a.look()
		case <-a.stop.Done():
			return
		}
		if next := a.refill(); !next.IsZero() {
			retry.Reset(time.Until(next))
		}
	}
}

// refill starts what is wanted. next is when there may be more to do.
func (a *ahead) refill() (next time.Time) {
	for a.stop.Err() == nil {
		a.settleDoubt()
		s, at := a.next(time.Now())
		if next = at; s == nil || !a.awaitQuiet() {
			break
		}
		if err := a.start(s); err != nil && a.stop.Err() == nil {
			level := a.Logger.Debug
			if a.fail(s.line) == 0 {
				level = a.Logger.Warn
			}
			level("cannot start a process before its call: calls start their own meanwhile", "tool", s.request.ToolName(), "error", err)
		}
	}
	return next
}

// next is the stock that wants a process most, if there is room for it. at is when
// another one may.
func (a *ahead) next(now time.Time) (most *stock, at time.Time) {
	most, at = a.choose(now)
	a.trim()
	return most, at
}

// trim ends the oldest of those that are more than are wanted.
func (a *ahead) trim() {
	a.mu.Lock()
	wants := map[*Line]int{}
	for l, s := range a.stocks {
		wants[l] = s.want
	}
	a.mu.Unlock()
	for l, want := range wants {
		l.ask(func() {
			for len(l.parked) > want {
				oldest := l.parked[0]
				l.unpark(oldest)
				l.claim(oldest)
			}
		})
	}
}

// choose is next, and has another stock want fewer if that is to make room.
func (a *ahead) choose(now time.Time) (most *stock, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.stocks {
		switch {
		case s.waiting() >= s.want:
		case now.Before(s.rest):
			if at.IsZero() || s.rest.Before(at) {
				at = s.rest
			}
		case most == nil || s.waiting() < most.waiting() || s.waiting() == most.waiting() && s.used.After(most.used):
			most = s
		}
	}
	if most == nil || a.fits(most.memory) {
		return most, at
	}
	least := a.oldest(func(s *stock) bool { return s.waiting() > most.waiting() && s.used.Before(most.used) })
	if least == nil {
		return nil, at
	}
	least.want = max(least.waiting()-1, 0) // until it is used again
	return most, at
}

// fits says whether the budget has room for one more with so much memory. The caller
// has locked.
func (a *ahead) fits(more int64) bool {
	processes, memory := 1, more
	for _, s := range a.stocks {
		processes += s.waiting()
		memory += int64(s.waiting()) * s.memory
	}
	return processes <= a.Budget.Processes && memory <= a.Budget.MemoryBytes
}

// awaitQuiet waits until a start is in nobody's way; false at the end.
func (a *ahead) awaitQuiet() bool {
	for began := time.Now(); ; {
		select {
		case <-time.After(settleTime):
		case <-a.stop.Done():
			return false
		}
		waited := time.Since(began)
		if (waited > startPatience || !a.Starting()) && (waited > cpuPatience || !a.Busy()) {
			return true
		}
	}
}

// hold keeps the line of a stock that one is started for, unless it was dropped meanwhile:
// a line that has ended takes over no process.
func (a *ahead) hold(s *stock) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	wanted := a.stocks[s.line] == s
	if wanted {
		s.line.hold()
	}
	return wanted
}

// start makes a process and parks it.
func (a *ahead) start(s *stock) (err error) {
	if !a.hold(s) {
		return nil
	}
	defer s.line.unhold()
	p, err := a.Prepare(a.stop, s.request)
	if err != nil {
		return err
	}
	defer p.Close()
	if aheadOf(p) != s.line.sum {
		a.obsolete(s)
		return nil
	}
	var made *stay
	w := newWarden(s.line)
	err = a.Start(a.stop, p, w, func(p *process.Process) {
		made = s.line.newStay(p)
		made.warden = w
	})
	if err == nil {
		err = a.park(s, made)
	} else if made != nil {
		a.pool.destroy(made)
	}
	return err
}

// park takes over a process that has answered.
func (a *ahead) park(s *stock, made *stay) error {
	now, err := made.process.Current()
	if err == nil {
		err = made.process.SetTimer(process.Forever)
	}
	made.since, made.cpu = time.Now(), now.CPU
	a.mu.Lock()
	s.memory = now.MemoryBytes
	if err == nil && !a.fits(s.memory) {
		err = errTooLarge
	}
	a.mu.Unlock()
	if err != nil {
		a.pool.destroy(made)
		return err
	}
	parked := false
	s.line.ask(func() { parked = s.line.park(made) })
	a.mu.Lock()
	wanted := a.stocks[s.line] == s
	a.mu.Unlock()
	if !wanted { // it was dropped meanwhile
		s.line.ask(s.line.drain)
	} else if !parked {
		return errDiedParked
	}
	return nil
}

// obsolete drops a stock whose request means another process by now.
func (a *ahead) obsolete(s *stock) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stocks[s.line] == s {
		a.drop(s)
	}
	a.doubt = true
}

// settleDoubt finds out which lines the declared requests mean, and drops those that
// no declared request means any longer.
func (a *ahead) settleDoubt() {
	a.mu.Lock()
	doubt, fewer, declared := a.doubt, a.fewer, a.declared
	a.doubt, a.fewer = false, false
	a.mu.Unlock()
	if !doubt {
		return
	}
	wants := map[string]int{}
	for _, d := range declared {
		sum, err := a.find(d.request)
		if err == nil {
			wants[sum] = max(wants[sum], d.request.Prestart)
		} else if a.stop.Err() == nil && d.problem != err.Error() {
			d.problem = err.Error()
			a.Logger.Warn("no process is started before the calls of a tool", "tool", d.request.ToolName(), "why", err)
		}
	}
	a.dropAll(func(s *stock) bool {
		_, meant := wants[s.line.sum]
		return s.fixed && !meant
	})
	if fewer {
		a.lower(wants)
	}
}

// lower has the stocks of declared requests want no more than these do.
func (a *ahead) lower(wants map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.stocks {
		if s.fixed {
			s.want = min(s.want, wants[s.line.sum])
		}
	}
}

// sumOf tells which line a request means at present.
func (a *ahead) sumOf(request spec.Request) (string, error) {
	p, err := a.Prepare(a.stop, request)
	if err != nil {
		return "", err
	}
	defer p.Close()
	return aheadOf(p), nil
}

// find has a declared request's line stocked.
func (a *ahead) find(request spec.Request) (sum string, err error) {
	if sum, err = a.sumOf(request); err != nil {
		return "", err
	}
	l, err := a.pool.join(sum, Key{}, spec.Keep{Once: true})
	if err != nil {
		return "", err
	}
	defer l.Part()
	a.stock(l, request, true)
	return sum, nil
}

// look ends what has been parked and is not as it should be.
func (a *ahead) look() {
	a.mu.Lock()
	a.doubt = a.doubt || len(a.declared) > 0
	var all []*stock
	for _, s := range a.stocks {
		all = append(all, s)
	}
	a.mu.Unlock()
	for _, s := range all {
		if !s.fixed && (time.Since(s.used) > spec.DefaultKeepIdle || !a.means(s)) || !a.pool.has(s.line) {
			a.obsolete(s)
			continue
		}
		var parked []*stay
		s.line.ask(func() { parked = slices.Clone(s.line.parked) })
		for _, one := range parked {
			a.lookAt(s, one)
		}
	}
}

// means says whether a stock's request still means its line.
func (a *ahead) means(s *stock) bool {
	sum, err := a.sumOf(s.request)
	return err == nil && sum == s.line.sum
}

// lookAt ends one that works without a call.
func (a *ahead) lookAt(s *stock, one *stay) {
	now, err := one.process.Current()
	if err != nil {
		return // a call has taken it, and has ended
	}
	a.mu.Lock()
	s.memory = now.MemoryBytes
	a.mu.Unlock()
	if now.CPU-one.cpu > parkedBurst+time.Since(one.since)/parkedParts {
		a.Logger.Warn("a process works while it waits for a call: it is ended", "tool", s.request.ToolName(), "cpu", now.CPU-one.cpu)
		one.warden.end()
	}
}
