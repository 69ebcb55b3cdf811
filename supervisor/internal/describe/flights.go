package describe

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// maxRestingKept bounds the Describes that rest.
const maxRestingKept = 1024

// What could not be described rests, at first for ten times as long as it took to
// fail, and twice as long after each further failure.
const (
	restFactor = 10
	minRest    = time.Second
	maxRest    = time.Minute
)

// Key tells Describes apart: another file, or another word of the operator, is
// another Describe.
type Key [sha256.Size]byte

// Flights are the Describes under way, one for all who ask for the same, and
// those that have failed.
type Flights struct {
	now func() time.Time

	mu      sync.Mutex
	flights map[Key]*flight
	resting map[Key]*rest
}

// flight is a Describe under way. It ends early when nobody waits for it any more.
type flight struct {
	waiters int // guarded by Flights.mu
	giveUp  context.CancelCauseFunc
	done    chan struct{} // closed when what follows is set
	found   *Described
	err     error
}

// rest is a Describe that has failed.
type rest struct {
	err      error
	tries    int
	at, till time.Time
}

// NewFlights makes them.
func NewFlights() *Flights {
	return &Flights{now: time.Now, flights: map[Key]*flight{}, resting: map[Key]*rest{}}
}

// Do gives what work finds out, or what it has found out for somebody else.
func (d *Flights) Do(ctx context.Context, key Key, work func(context.Context) (*Described, error)) (*Described, error) {
	if ctx.Err() != nil { // nothing is begun for it
		return nil, gaveUp(ctx)
	}
	f, err := d.join(key, work)
	if err != nil {
		return nil, err
	}
	select {
	case <-f.done:
		return f.found, f.err
	case <-ctx.Done():
	}
	if d.leave(key, f, context.Cause(ctx)) {
		<-f.done
		return f.found, f.err
	}
	return nil, gaveUp(ctx)
}

func gaveUp(ctx context.Context) error {
	return outcome.Refuse(api.StatusCancelled, outcome.AbortReason(ctx), errors.New("gave up waiting for its description"))
}

// join finds the flight, or begins one. An error is that of one which rests.
func (d *Flights) join(key Key, work func(context.Context) (*Described, error)) (*flight, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.flights[key]; f != nil {
		f.waiters++
		return f, nil
	}
	if r := d.resting[key]; r != nil && d.now().Before(r.till) {
		return nil, r.refusal(d.now())
	}
	f := &flight{waiters: 1, done: make(chan struct{})}
	var ctx context.Context
	ctx, f.giveUp = context.WithCancelCause(context.Background())
	d.flights[key] = f
	go d.fly(ctx, key, f, work) // whoever joins, or is the last to leave, waits for it
	return f, nil
}

func (d *Flights) fly(ctx context.Context, key Key, f *flight, work func(context.Context) (*Described, error)) {
	began := d.now()
	f.found, f.err = work(ctx)
	f.giveUp(nil)
	d.mu.Lock()
	if d.flights[key] == f {
		delete(d.flights, key)
	}
	if f.waiters > 0 { // or it was given up, and nothing is known
		d.settle(key, f.err, began)
	}
	d.mu.Unlock()
	close(f.done)
}

// leave is true for the last one, who ends the flight and sees to its end.
func (d *Flights) leave(key Key, f *flight, cause error) (last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f.waiters--
	if f.waiters > 0 {
		return false
	}
	if d.flights[key] == f { // who comes now begins another
		delete(d.flights, key)
	}
	f.giveUp(cause)
	return true
}

// settle notes what is to rest. d is locked.
func (d *Flights) settle(key Key, err error, began time.Time) {
	before := d.resting[key]
	if !failsAgain(err) {
		if err == nil {
			delete(d.resting, key)
		}
		return
	}
	now := d.now()
	r := &rest{err: err, at: now, tries: 1}
	if before != nil && now.Sub(before.till) < maxRest {
		r.tries += before.tries
	}
	r.till = now.Add(pause(now.Sub(began), r.tries))
	if len(d.resting) >= maxRestingKept {
		clear(d.resting)
	}
	d.resting[key] = r
}

// pause is how long a tool rests that has failed so often in a row.
func pause(took time.Duration, tries int) time.Duration {
	wait := min(max(restFactor*took, minRest), maxRest)
	for ; tries > 1 && wait < maxRest; tries-- {
		wait *= 2
	}
	return min(wait, maxRest)
}

// failsAgain says that a Describe has failed by what the tool did, and would fail
// again. One that was given too little time says nothing about the tool, and the
// next call is to have its own.
func failsAgain(err error) bool {
	if refused, ok := errors.AsType[*outcome.Refusal](err); ok && refused.Status == api.StatusTimeout && refused.Describing != nil {
		if given := refused.Describing.Timing.TimeoutMs; given != nil && time.Duration(*given)*time.Millisecond < minRest {
			return false
		}
	}
	return isTheTools(err)
}

// isTheTools says that a Describe has failed by what the tool did.
func isTheTools(err error) bool {
	refused, ok := errors.AsType[*outcome.Refusal](err)
	if !ok {
		return false
	}
	switch refused.Status {
	case api.StatusTimeout, api.StatusPidsLimit, api.StatusCPULimit, api.StatusOutputLimit, api.StatusCrashed, api.StatusNoResult, api.StatusProtocolError, api.StatusToolError, api.StatusUnkillable:
		return true
	case api.StatusOOM:
		return refused.Reason != api.ReasonHostMemory
	case api.StatusStartFailed:
		return refused.Reason != api.ReasonHost && refused.Describing != nil
	}
	return false
}

// refusal is what a call comes to whose tool rests.
func (r *rest) refusal(now time.Time) error {
	failed, _ := errors.AsType[*outcome.Refusal](r.err)
	refused := &outcome.Refusal{Status: failed.Status, Reason: failed.Reason, Again: wholeSecond(r.till.Sub(now))}
	refused.Err = fmt.Errorf("%w (%s ago; it is tried again in %s, or when its file or its settings change)", r.err, now.Sub(r.at).Round(time.Second), refused.Again)
	return refused
}

func wholeSecond(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
