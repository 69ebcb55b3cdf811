package worker

import (
	"cmp"
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// attempt is one try of a call, from its offer until its result is acknowledged.
type attempt struct {
	id    *fleetv1.Attempt
	reply string    // the subject of its frames
	at    time.Time // of the offer
	// Guarded by Worker.mu.
	state     start.Attempt
	offer     start.Message // with or without the go
	holdsSlot bool
	waits     bool // in the worker's line
	preparing bool
	asked     []byte         // the request, until it is decided whether it starts
	why       *fleetv1.Never // of one that was refused
	planned
	begun  *fleetv1.Started
	left   time.Duration  // what its caller says that it may run for, or 0
	lease  *sandbox.Lease // of one that starts
	told   int            // aborts so far; a second one kills
	reason api.Reason     // of the first
	// cancel ends what comes before runs, once the call is begun.
	cancel context.CancelCauseFunc
	runs   *supervisor.Call
	// out is written once, before the tool starts.
	out atomic.Pointer[outlet]
}

// leftOf is what a caller says that a call may run for, or 0.
func leftOf(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// lend has the attempt's launcher hold its caller's lease.
func (w *Worker) lend(c *caller, a *attempt) (err error) {
	a.lease, err = c.lease(time.Duration(a.begun.GraceMs) * time.Millisecond)
	return err
}

// idle says whether nothing of the attempt is still to be sent.
func (a *attempt) idle() bool {
	o := a.out.Load()
	return o == nil || o.done.Load()
}

// giveUp leaves what was made ready for an attempt that will not start. The caller holds mu.
func (a *attempt) giveUp() {
	a.planned.giveUp()
	a.planned = planned{}
}

// start begins the call. The secrets of one that has some were not known when it was
// planned, so it is planned anew, which ctx ends.
func (w *Worker) start(ctx context.Context, a *attempt, own supervisor.Own) *supervisor.Call {
	call := a.call
	if len(a.request.Secrets) > 0 {
		a.call.Close()
		var err error
		if call, err = w.host.Prepare(ctx, own.Of(a.request)); err == nil {
			w.mu.Lock()
			a.begun = w.begunOf(call)
			w.mu.Unlock()
		}
	}
	w.mu.Lock()
	if left := own.Left.Milliseconds(); left > 0 && (a.begun.TimeoutMs == 0 || left < a.begun.TimeoutMs) {
		a.begun.TimeoutMs = left
	}
	w.mu.Unlock()
	return call.Start(context.Background(), own) // running aborts it
}

// outlet sends what comes of a call, and keeps it until the caller has it.
type outlet struct {
	acked  atomic.Uint64
	kick   chan struct{} // something is to be done
	nobody chan struct{} // closed when the caller's life has ended, with which the call is lost
	// questions of the call.
	questions *questions
	done      atomic.Bool
}

// lose has nobody be waited for to take the result. The caller of lose holds mu, and calls it
// once.
func (a *attempt) lose() {
	if o := a.out.Load(); o != nil {
		close(o.nobody)
	}
}

// ack takes the caller's word. The caller of ack holds mu.
func (o *outlet) ack(through uint64) {
	o.acked.Store(max(through, o.acked.Load()))
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// abort has a call aborted, before or while it runs; at once is without grace. The caller
// holds mu.
func (a *attempt) abort(reason api.Reason, atOnce bool) {
	most := 1
	if atOnce {
		most = 2
	}
	for a.reason = cmp.Or(a.reason, reason); a.told < most; a.told++ {
		switch {
		case a.runs != nil:
			a.runs.Abort(a.reason)
		case a.cancel != nil:
			a.cancel(supervisor.AbortCause(a.reason))
		}
	}
}

// running takes the call of an attempt that has started, and has it aborted if that was
// told before.
func (w *Worker) running(a *attempt, call *supervisor.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.runs = call
	for range a.told {
		call.Abort(a.reason)
	}
}
