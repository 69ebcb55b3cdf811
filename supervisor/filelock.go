package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// Lock keeps calls that use the same files from running at once, also those of
// other hosts: it is a flock(2) on a file, which ends with its holder.
type Lock struct {
	// File is made if it is not there, and stays. It must be out of the call's
	// reach. Empty means no lock.
	File string
	// Shared lets others run that share it, too.
	Shared bool
}

// lockEvery is how often a lock that somebody has is tried again: a flock that
// waits could not be given up.
const lockEvery = 20 * time.Millisecond

// lockWaitEndless is how long a call waits that may itself take for ever.
const lockWaitEndless = time.Hour

// lockWait is as long as for a slot, or as the call itself may take if that is
// longer: so may those that are before it.
func (c *Call) lockWait() time.Duration {
	wait := c.s.config.Admission.limits().Wait
	if c.resolution.Timeout == budget.Infinite {
		return max(wait, lockWaitEndless)
	}
	return max(wait, c.resolution.Timeout)
}

// lock waits until the call may use the tool's files. Errors are a refusal, ctx's
// cause, and those of the file.
func (c *Call) lock(ctx context.Context) (unlock func(), err error) {
	if c.request.Lock.File == "" {
		return func() {}, nil
	}
	most := c.s.config.Admission.limits().Queue
	if n := c.s.locking.Add(1); n > int64(most) {
		c.s.locking.Add(-1)
		return nil, refuse(api.StatusOverloaded, api.ReasonData, fmt.Errorf("%d calls wait for data of tools already: call again later", most))
	}
	defer c.s.locking.Add(-1)
	wait := c.lockWait()
	ctx, cancel := context.WithTimeoutCause(ctx, wait, refuse(api.StatusOverloaded, api.ReasonData,
		fmt.Errorf("another call, or a process that is kept, has used the tool's data for %s (it holds the lock %s)", wait, c.request.Lock.File)))
	defer cancel()
	if c.line != nil {
		return c.line.data.acquire(ctx, c.request.Lock.File)
	}
	return c.request.Lock.acquire(ctx)
}

// acquire waits for the lock until ctx is over.
func (l Lock) acquire(ctx context.Context) (release func(), err error) {
	how := syscall.LOCK_EX
	if l.Shared {
		how = syscall.LOCK_SH
	}
	// Whoever comes waits behind those that came before, or those that share the
	// lock would never let in one that does not.
	turn, err := openLocked(ctx, l.File+".turn", syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer turn.Close()
	file, err := openLocked(ctx, l.File, how)
	if err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

func openLocked(ctx context.Context, path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, hostFailure(fmt.Errorf("cannot open the lock of the tool's data: %w", err))
	}
	if err := flock(ctx, file, how); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func flock(ctx context.Context, file *os.File, how int) error {
	again := time.NewTicker(lockEvery)
	defer again.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return hostFailure(fmt.Errorf("cannot lock the tool's data (%s): %w", file.Name(), err))
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sharedData is a lock that a kept process and its calls have together. It is
// exclusive, since what one of them may not write another one may.
type sharedData struct {
	turn    chan struct{} // holds one: whoever looks at the rest
	holders int
	release func()
}

func newSharedData() *sharedData { return &sharedData{turn: make(chan struct{}, 1)} }

// acquire waits only where nobody has the lock yet.
func (d *sharedData) acquire(ctx context.Context, file string) (release func(), err error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.turn }()
	if d.holders == 0 {
		if d.release, err = (Lock{File: file}).acquire(ctx); err != nil {
			return nil, err
		}
	}
	d.holders++
	return d.drop, nil
}

// join is for who is there while somebody else has the lock for certain.
func (d *sharedData) join() (release func()) {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	d.holders++
	return d.drop
}

func (d *sharedData) drop() {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.holders--; d.holders == 0 {
		d.release()
	}
}
