package supervisor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/admission"
)

// Keep lets a tool's process live on for later calls of the same request (the
// same binary, arguments vector, environment, limits and policy). It is for
// trusted tools only: what one call leaves in the process, its workspace and
// its memory, the next one finds. Limits hold for all its calls together. The
// process ends at the first call that must be killed, and takes the others in
// flight with it: they are StatusCollateral.
type Keep struct {
	// Idle is how long the process waits for another call; zero is
	// DefaultKeepIdle.
	Idle time.Duration
	// MaxCalls ends the process after so many calls; zero is no limit.
	MaxCalls int
	// Shared lets the call run beside other shared ones on the process; the
	// others have it to themselves, in line. What it writes to stdout and stderr
	// is every call's that is in flight.
	Shared bool
}

// maxShared is how many shared calls a process serves at once.
const maxShared = 8

// DefaultKeepIdle is how long a kept process waits for another call.
const DefaultKeepIdle = 5 * time.Minute

// maxKept bounds the kept processes that are idle or in use.
const maxKept = 64

// keeper keeps instances for later calls. What a closed one is given, it ends.
type keeper struct {
	admission admission.Limits

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
	instance *instance
}

func newKeeper(limits admission.Limits) *keeper {
	return &keeper{admission: limits, lines: map[string]*line{}}
}

// checkKeep refuses what cannot be kept.
func (c *Call) checkKeep() error {
	keep := c.request.Keep
	switch {
	case keep == nil:
		return nil
	case c.request.Command != nil:
		return refuse(StatusStartFailed, "keep", errors.New("a plain command ends with its call: leave out Keep"))
	case c.request.FilesTo != "":
		return refuse(StatusStartFailed, "keep", errors.New("a kept process keeps its workspace: leave out Keep, or the folder for its files"))
	case keep.Idle < 0 || keep.MaxCalls < 0:
		return refuse(StatusStartFailed, "keep", fmt.Errorf("a negative limit of a kept process (idle %s, %d calls): leave it out, or make it positive", keep.Idle, keep.MaxCalls))
	}
	return nil
}

// joinLine takes a place in the line for the call's kept process, if it wants
// one.
func (c *Call) joinLine() error {
	if c.request.Keep == nil {
		return nil
	}
	line, err := c.s.keeper.join(c.keepKey(), *c.request.Keep, c.lockWait())
	c.line = line
	return err
}

// keepKey is the same for calls that may share a process.
func (c *Call) keepKey() string {
	key := fmt.Sprintf("%q %q %q %q %q %+v %+v %s %d", c.binary.sha256, c.path, c.request.Tool.Args, c.request.Env, c.dir, c.limits, c.plan.Receipt(), c.request.Keep.Idle, c.request.Keep.MaxCalls)
	for _, s := range c.request.Secrets {
		key += fmt.Sprintf(" %q %q %v", s.Variable, s.Value, s.File)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
}

func (k *keeper) join(key string, keep Keep, wait time.Duration) (*line, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.lines[key]
	if l == nil {
		if len(k.lines) >= maxKept && !k.evict() {
			return nil, refuse(StatusOverloaded, "keep", fmt.Errorf("all %d kept processes are in use: call again later", maxKept))
		}
		l = newLine(k, key, keep, wait)
		k.lines[key] = l
	}
	l.calls++
	return l, nil
}

func newLine(k *keeper, key string, keep Keep, wait time.Duration) *line {
	if keep.Idle == 0 {
		keep.Idle = DefaultKeepIdle
	}
	limits := k.admission
	limits.Running, limits.Wait = maxShared, wait
	return &line{keeper: k, key: key, keep: keep, gate: admission.New(limits), data: newSharedData()}
}

// evict makes room by ending a process that is idle.
func (k *keeper) evict() bool {
	for key, l := range k.lines {
		if l.calls == 0 {
			delete(k.lines, key)
			go k.end(l.instance)
			return true
		}
	}
	return false
}

// part leaves the line; a nil line has nobody in it.
func (l *line) part() {
	if l == nil {
		return
	}
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	l.calls--
	l.tidy()
}

// tidy drops a line that nobody needs. The keeper is locked.
func (l *line) tidy() {
	if l.calls == 0 && l.instance == nil && l.keeper.lines[l.key] == l {
		delete(l.keeper.lines, l.key)
	}
}

// enter waits for a place at the process; done gives it back.
func (l *line) enter(ctx context.Context, shared bool) (done func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	slots := maxShared
	if shared {
		slots = 1
	}
	done, err = l.gate.AcquireSlots(ctx, slots)
	if _, full := errors.AsType[*admission.OverloadedError](err); full {
		err = refuse(StatusOverloaded, "keep", errors.New("other calls have its kept process, or wait for it: call again later"))
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

// end ends an idle instance, unless it is in use again.
func (k *keeper) end(i *instance) {
	if !k.begin() {
		return
	}
	defer k.ending.Done()
	if i.claim() {
		i.bury()
	}
}

// begin is false once close ends everything itself.
func (k *keeper) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.ending.Add(1)
	}
	return !k.closed
}

// bury kills what lives of a claimed instance and frees it.
func (i *instance) bury() {
	i.line.forget(i)
	i.kill()
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
	go i.freeLater()
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
			k.ending.Go(i.bury)
		}
	}
	k.ending.Wait()
}
