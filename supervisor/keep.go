package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// maxShared is how many shared calls a process serves at once.
const maxShared = 8

// maxKept bounds the kept processes that are idle or in use.
const maxKept = 64

// keeper keeps instances for later calls. What a closed one is given, it ends.
type keeper struct {
	admission admission.Limits
	bury      func(*instance) // kills and frees one that is claimed

	mu     sync.Mutex
	lines  map[string]*line
	closed bool
	ending sync.WaitGroup
}

// line is where the calls for one kept process wait and find it.
type line struct {
	keeper *keeper
	key    string
	keep   Keep
	gate   *admission.Gate
	data   *sharedData // where the calls have a Lock

	// Guarded by the keeper's mu.
	calls    int
	idle     time.Time // since when there are no calls
	instance *instance
}

func newKeeper(limits admission.Limits) *keeper {
	return &keeper{admission: limits, bury: (*instance).bury, lines: map[string]*line{}}
}

// joinLine takes a place in the line for the call's kept process, if it wants
// one.
func (c *Call) joinLine() error {
	if c.p.Request.Keep == nil {
		return nil
	}
	line, err := c.s.keeper.join(c.keepKey().sum(), *c.p.Request.Keep)
	c.line = line
	return err
}

func (k *keeper) join(key string, keep Keep) (*line, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.lines[key]
	if l == nil {
		if len(k.lines) >= maxKept && !k.evict() {
			return nil, outcome.Refuse(api.StatusOverloaded, api.ReasonKeep, fmt.Errorf("all %d kept processes are in use: call again later", maxKept))
		}
		l = newLine(k, key, keep)
		k.lines[key] = l
	}
	l.calls++
	return l, nil
}

func newLine(k *keeper, key string, keep Keep) *line {
	keep.Idle = cmp.Or(keep.Idle, DefaultKeepIdle)
	limits := k.admission
	limits.Running = maxShared
	return &line{keeper: k, key: key, keep: keep, gate: admission.New(limits), data: newSharedData()}
}

// evict makes room by ending the process that has been idle for longest.
func (k *keeper) evict() bool {
	var oldest *line
	for _, l := range k.lines {
		if l.calls == 0 && (oldest == nil || l.idle.Before(oldest.idle)) {
			oldest = l
		}
	}
	if oldest == nil {
		return false
	}
	delete(k.lines, oldest.key)
	k.endSoon(oldest.instance)
	return true
}

// endSoon ends an idle instance, unless it is in use again by then; close waits
// for it. The keeper is locked.
func (k *keeper) endSoon(i *instance) {
	if k.closed {
		return // which ends all that is kept itself
	}
	k.ending.Go(func() {
		if i.claim() {
			k.bury(i)
		}
	})
}

// part leaves the line; a nil line has nobody in it.
func (l *line) part() {
	if l == nil {
		return
	}
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	l.calls--
	l.idle = time.Now()
	l.tidy()
}

// tidy drops a line that nobody needs. The keeper is locked.
func (l *line) tidy() {
	if l.calls == 0 && l.instance == nil && l.keeper.lines[l.key] == l {
		delete(l.keeper.lines, l.key)
	}
}

// enter waits for a place at the process; done gives it back.
func (l *line) enter(ctx context.Context, shared bool, wait time.Duration) (done func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	slots := maxShared
	if shared {
		slots = 1
	}
	done, err = l.gate.AcquireSlots(ctx, slots, wait)
	if _, full := errors.AsType[*admission.OverloadedError](err); full {
		err = outcome.Refuse(api.StatusOverloaded, api.ReasonKeep, errors.New("other calls have its kept process, or wait for it: call again later"))
	}
	return done, err
}

// take finds the process that is kept, if there is one, for a call.
func (l *line) take(c *Call) *instance {
	if l == nil {
		return nil
	}
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	if l.instance != nil && l.instance.attach(c) {
		return l.instance
	}
	return nil
}

// offer keeps an instance that serves its first call. Where two calls have
// started one each at once, the later one is used up by its own.
// It has the data of the tool for as long as it lives, as its call has them now.
func (l *line) offer(i *instance, locked bool) {
	if l == nil {
		return
	}
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	if l.keeper.closed || l.instance != nil && l.instance.usable() {
		i.keepNoLonger()
		return
	}
	l.instance = i
	if locked {
		i.unlock = l.data.join()
	}
}

func (i *instance) usable() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.doomed && !i.worn()
}

func (i *instance) keepNoLonger() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.line = nil
}

// forget takes an instance out of its line.
func (l *line) forget(i *instance) {
	if l == nil {
		return
	}
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	if l.instance == i {
		l.instance = nil
		l.tidy()
	}
}

// end ends an idle instance, unless it is in use again. It does not wait.
func (k *keeper) end(i *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endSoon(i)
}

// bury kills what lives of a claimed instance and frees it.
func (i *instance) bury() {
	i.line.forget(i)
	_ = i.kill()
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	select {
	case <-i.process.Gone():
	case <-ctx.Done():
	}
	if i.process.HasEnded() && i.group.WaitEmpty(ctx) == nil {
		<-i.exitTold
		i.free()
		return
	}
	i.logger.Warn("cannot end a kept process: the kernel holds it", "pid", i.process.PID())
	i.tasks.Run("free what does not die", i.freeLater)
}

// load is how many instances are kept.
func (k *keeper) load() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.lines {
		if l.instance != nil {
			n++
		}
	}
	return n
}

// close ends what is kept. No call may be in line any more.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	var kept []*instance
	for _, l := range k.lines {
		if l.instance != nil {
			kept = append(kept, l.instance)
		}
	}
	k.mu.Unlock()
	for _, i := range kept {
		if i.claim() {
			k.ending.Go(func() { k.bury(i) })
		}
	}
	k.ending.Wait()
}
