package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor/internal/filelock"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// lockWaitEndless is how long a call waits that may itself take for ever.
const lockWaitEndless = time.Hour

// lockWait is as long as for a slot, or as the call itself may take if that is
// longer: so may those that are before it.
func (c *Call) lockWait() time.Duration {
	wait := c.s.config.Admission.limits().Wait
	if c.p.Timeout.Timeout == budget.Infinite {
		return max(wait, lockWaitEndless)
	}
	return max(wait, c.p.Timeout.Timeout)
}

// lock waits until the call may use the tool's files. Errors are a refusal, ctx's
// cause, and those of the file.
func (c *Call) lock(ctx context.Context) (unlock func(), err error) {
	if c.p.Request.Lock.File == "" {
		return func() {}, nil
	}
	most := c.s.config.Admission.limits().Queue
	if n := c.s.locking.Add(1); n > int64(most) {
		c.s.locking.Add(-1)
		return nil, outcome.Refuse(api.StatusOverloaded, api.ReasonData, fmt.Errorf("%d calls wait for data of tools already: call again later", most))
	}
	defer c.s.locking.Add(-1)
	wait := c.lockWait()
	ctx, cancel := context.WithTimeoutCause(ctx, wait, outcome.Refuse(api.StatusOverloaded, api.ReasonData,
		fmt.Errorf("another call, or a process that is kept, has used the tool's data for %s (it holds the lock %s)", wait, c.p.Request.Lock.File)))
	defer cancel()
	if c.line != nil {
		return c.line.data.acquire(ctx, c.p.Request.Lock.File)
	}
	return filelock.Acquire(ctx, c.p.Request.Lock.File, c.p.Request.Lock.Shared)
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
		if d.release, err = filelock.Acquire(ctx, file, false); err != nil {
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
