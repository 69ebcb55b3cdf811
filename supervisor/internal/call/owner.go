package call

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/stack"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// owner is a call's mutable state. Only the goroutine in Run touches it.
type owner struct {
	*Call
	state state
	clocks
	marks marks
	// found is what is known so far of how the call ends.
	found    outcome.Evidence
	warnings []string
	leftOut  []string // what has been warned of

	tree    Tree          // nil until there are processes
	after   *cgroup.Usage // what they had used when they were released alive
	ladder  ladder
	tool    tool
	content contents

	streamOver, outputOver bool
	uncertain              bool // whether the tool's program has begun

	release    func() // gives back what Enter waited for; nil before that
	leaveQueue context.CancelFunc
	cancelWork context.CancelFunc // ends start-up and stream; only after the kill
	started    chan struct{}      // closed when the starter has ended
	lifetime   context.Context    // ends when the call has its result
	end        context.CancelFunc
	helpers    sync.WaitGroup // goroutines that end with lifetime
}

// Run is the call, from its beginning to the end of all that it holds. Aborts and ctx
// only begin its end: it always makes a result. With a ctx that is over nothing of it starts.
func (c *Call) Run(ctx context.Context) {
	defer c.p.Close()
	stack.Shallow()
	defer c.abortAfter(ctx)()
	c.own().run()
}

func (c *Call) abortAfter(ctx context.Context) (stop func() bool) {
	abort := func() { c.Abort(outcome.AbortReason(ctx)) }
	if ctx.Err() != nil { // which is to be known before there is a slot
		abort()
		return func() bool { return false }
	}
	return context.AfterFunc(ctx, abort)
}

func (c *Call) own() *owner {
	o := &owner{Call: c, warnings: slices.Clone(c.p.Warnings), tool: newTool(c.p.ID), content: newContents(c), ladder: newLadder(), clocks: clocks{alarm: newAlarm(c.sleep)}}
	o.lifetime, o.end = context.WithCancel(context.Background())
	return o
}

func (o *owner) run() {
	o.queue(time.Now())
	for o.state != stateDone {
		next := o.nextBell()
		o.alarm.set(next.at, !next.loose)
		select {
		case in := <-o.inbox:
			in.take(o, time.Now())
		case reason := <-o.aborts:
			o.onAbort(reason, time.Now())
		case <-o.alarm.fired:
			o.alarm.rang()
		}
		o.checkClocks(time.Now())
	}
	o.retire()
	o.finish()
	o.teardown()
}

// to makes the transition that t leads to, with all that belongs to it; false if
// the table has none.
func (o *owner) to(t trigger, now time.Time) bool {
	state, ok := next(o.state, t)
	if !ok {
		return false
	}
	o.state = state
	o.ending.Store(state >= stateStopping)
	switch state {
	case stateStarting:
		o.start(now)
	case stateRunning:
		o.work(now)
	case stateStopping:
		o.terminate(now)
	case stateKilling:
		o.kill(t, now)
	case stateDraining:
		o.drain(t, now)
	}
	return true
}

// queue waits for a slot, and all else that the call needs to itself.
func (o *owner) queue(now time.Time) {
	o.marks.created = now
	o.events.Publish(api.Event{Kind: api.EventQueued})
	ctx, cancel := context.WithCancel(o.lifetime)
	o.leaveQueue = cancel
	o.Tasks.Run("enter", func() {
		leave, left, err := o.Enter(ctx)
		switch {
		case err != nil:
			o.send(refusedEntry{err})
		case !o.send(admittedEntry{leave, left}):
			leave()
		}
	})
}

// start has the tool brought up. The timeout runs.
func (o *owner) start(now time.Time) {
	o.marks.admitted, o.startBy = now, now.Add(o.p.StartTimeout)
	o.clock = budget.NewClock(now, budget.ClockSpec{Timeout: o.timeout().Timeout, Soft: o.timeout().SoftBudget, Stream: o.p.Request.Stream})
	ctx, cancel := context.WithCancel(context.Background())
	o.cancelWork, o.started = cancel, make(chan struct{})
	o.output.open()
	o.leaveQueue()
	tree, conn := o.Take(o.Call)
	if tree != nil {
		o.spawned = tree
		now = time.Now()
		spawned{tree}.take(o, now)
	}
	if conn != nil {
		close(o.started)
		connection{conn}.take(o, now)
		return
	}
	o.Tasks.Run("start", func() {
		defer close(o.started)
		o.Start(ctx, o.Call)
	})
}

// work has the tool do what it is called for.
func (o *owner) work(now time.Time) {
	o.marks.ready = now
	if s := o.p.Service; s != nil {
		o.Tasks.Run("serve the tool", func() { o.p.Request.Host(s.Listener) })
	}
	o.clock.Started(now)
	o.progressAt = nextBeat(now)
	o.events.Publish(api.Event{Kind: api.EventStarted, TimeoutMs: budget.Milliseconds(o.timeout().Timeout)})
	if o.tree.Instance() != api.InstanceFresh || o.p.Request.Keep != nil {
		o.moveTimer(now) // the old one would cut the request short
	}
	conn, request := o.tool.conn, o.p.CallRequest(o.timeLeft(now))
	o.Tasks.Run("stream", func() { o.stream(o.lifetime, conn, request) })
	if o.p.Request.Keep != nil {
		o.tree.Share(o.p.Request.Lock.File != "")
	}
}

// terminate asks the tool to end, and begins the grace period.
func (o *owner) terminate(now time.Time) {
	early := o.marks.ready.IsZero()
	if early && o.marks.older(o.tree) || !o.signal() && early {
		o.to(killRequested, now) // there is nobody yet to be given time
		return
	}
	o.cancel()
}

// kill takes the whole group down, after the ladder or as the clean-up of a call
// that has ended, and has the owner told when nothing is left.
func (o *owner) kill(t trigger, now time.Time) {
	if o.found.Cause == outcome.CauseNone && o.found.Final == nil && o.tree != nil && o.tree.EndedByAnother() {
		o.found.Cause, o.found.Reason = outcome.CauseCollateral, api.ReasonCollateral // its death came before the word of it
	}
	o.p.Service.Close()
	if o.marks.stop.IsZero() {
		o.marks.stop = now
	}
	if o.tool.conn == nil { // a stream goes on until the tool's death ends it, so that nothing sent is lost
		o.cancelWork()
	}
	late := o.tree == nil || !closed(o.started)
	if o.tree != nil {
		o.killTree(t == ended || t == startFailed)
	}
	o.Tasks.Run("await the end of processes", func() { o.awaitEmpty(late) })
}

// drain reads the rest of pipes and stream. The processes are gone by now, or were
// left to other calls, or given up.
func (o *owner) drain(t trigger, now time.Time) {
	o.marks.empty, o.settleAt = now, now.Add(settleTime)
	switch t {
	case released:
		o.marks.stop = now
	case survived:
		if o.giveUp(); o.found.Survivors > 0 {
			o.settleAt = now
		}
	}
	o.tryDrained(now)
}
