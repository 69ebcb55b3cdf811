package conformance

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

const (
	// runsLong is how long a call must have run to be taken for one that would
	// go on.
	runsLong = 300 * time.Millisecond
	// beginsWithin is how long it may take to show something, where it will.
	beginsWithin = 2 * time.Second
)

const cancelFix = "end a call when Cancel names it and on SIGTERM: return what there is within the grace period"

// doCancel tells long calls to end, once by Cancel and once by SIGTERM.
func doCancel(ctx context.Context, b *bench, r *reply) {
	var t tally
	for i, call := range b.job.Calls {
		t.add(b.cancelled(ctx, i, call, r))
	}
	r.set(ruleCancel, t.finding(skipped("no call runs for long: give a case with long: true")))
}

func (b *bench) cancelled(ctx context.Context, i int, call call, r *reply) Finding {
	byCancel := b.stopCall(ctx, call, func(f *flight) error { return f.child.conn.Cancel(ctx, f.id, "conformance") })
	r.note(i, byCancel.before)
	if byCancel.found.Status != "" {
		return byCancel.found
	}
	bySignal := b.stopCall(ctx, call, func(f *flight) error { return f.child.process.Signal(syscall.SIGTERM) })
	if bySignal.found.Status != "" {
		return bySignal.found
	}
	detail := fmt.Sprintf("%s: Cancel: %s; SIGTERM: %s", call.Name, byCancel, bySignal)
	switch {
	case byCancel.problem != "":
		return failed(streamFix, "%s: after Cancel: %s", call.Name, byCancel.problem)
	case bySignal.problem != "" && !bySignal.silent: // of what is silent the advice is another
		return failed(streamFix, "%s: after SIGTERM: %s", call.Name, bySignal.problem)
	case !byCancel.ended && !bySignal.ended:
		return failed(cancelFix, "%s", detail)
	case !byCancel.ended || !bySignal.ended:
		return warned(cancelFix, "%s", detail)
	case byCancel.silent || bySignal.silent:
		return warned("treat SIGTERM as a cancel of every call: do not exit at once, send what there is, and a Result, and let the host end the process",
			"%s: there is no result of it", detail)
	}
	return passed("%s", detail)
}

// stopping is what came of telling a call to end.
type stopping struct {
	found   Finding // set if it could not be tried
	before  outcome // until it was told to end
	ended   bool
	silent  bool // without a result
	took    time.Duration
	problem string
	summary string
}

func (t stopping) String() string {
	if !t.ended {
		return "still running after " + short(t.took)
	}
	return fmt.Sprintf("ended after %s (%s)", short(t.took), t.summary)
}

// stopCall lets a call run for a while, tells it to end and waits for the grace
// period.
func (b *bench) stopCall(ctx context.Context, call call, tell func(*flight) error) (t stopping) {
	t.found = b.with(ctx, func(c *child) Finding {
		f := c.take(ctx, b.request("1", call), flightOptions{})
		if t.before = f.wait(runsLong); !t.before.timedOut {
			return endedByItself(call, t.before)
		}
		select { // what it does first may take a while
		case <-f.begun:
		case <-f.done:
		case <-time.After(beginsWithin):
		}
		t.before = f.now()
		began := time.Now()
		if err := tell(f); err != nil {
			return failed(cancelFix, "%s: cannot tell it to end: %v", call.Name, err)
		}
		o := f.wait(b.job.grace())
		t.ended, t.took, t.summary = !o.timedOut || c.ended() != "", time.Since(began), o.summary()
		t.silent = t.ended && o.result == nil
		if o.crashed() {
			t.summary = o.ended
		} else if t.ended {
			t.problem = o.problem()
		}
		return Finding{}
	})
	return t
}

func endedByItself(call call, o outcome) Finding {
	if call.Long {
		return failed("give the case arguments with which it runs until it is told to end, or leave out long",
			"%s says long: true and ended by itself after %s: %s", call.Name, short(o.took), o.summary())
	}
	return skipped("%s: it ended by itself after %s: give a case with long: true", call.Name, short(o.took))
}

const flushFix = "after a Flush wait until Acknowledge has its seq or a greater one, and no longer than until the call is told to end"

// doFlush withholds acknowledgements.
func doFlush(ctx context.Context, b *bench, r *reply) {
	var t tally
	for _, call := range b.job.Calls {
		t.add(b.with(ctx, func(c *child) Finding { return b.unacknowledged(ctx, c, call) }))
	}
	r.set(ruleFlush, t.finding(skipped("no call sent a Flush: give a case that does, if the tool has any")))
}

func (b *bench) unacknowledged(ctx context.Context, c *child, call call) Finding {
	f := c.take(ctx, b.request("1", call), flightOptions{deaf: true})
	b.until(beginsWithin, func() bool { return f.over() || f.now().flushed })
	if !f.now().flushed {
		return Finding{}
	}
	if o := f.wait(runsLong); !o.timedOut {
		return warned(flushFix, "%s: it ended though its Flush was not acknowledged: %s", call.Name, o.summary())
	}
	if err := c.conn.Cancel(ctx, f.id, "conformance"); err != nil {
		return failed(cancelFix, "%s: Cancel during a Flush: %v", call.Name, err)
	}
	if o := f.wait(b.job.grace()); o.timedOut {
		return failed(flushFix, "%s: told to end while it waited for an acknowledgement it still ran after %s", call.Name, short(b.job.grace()))
	}
	return passed("%s: it waits, and ends when it is told to", call.Name)
}
