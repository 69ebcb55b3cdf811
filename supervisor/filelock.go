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
		return c.line.Lock(ctx, c.p.Request.Lock.File)
	}
	return filelock.Acquire(ctx, c.p.Request.Lock.File, c.p.Request.Lock.Shared)
}
