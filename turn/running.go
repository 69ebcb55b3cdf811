package turn

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/stack"
	"github.com/toolhost/toolhost/supervisor"
)

// start gives a call to the supervisor, if the turn's budget lets it.
func (b *batch) start(e *entry) {
	t := b.t
	now := t.now()
	if b.isStatus(e) {
		b.finish(e, t.status(e.call))
		return
	}
	if b.revoked(e) {
		return
	}
	b.disturb(e)
	gated := b.beforeStart()
	if t.recorded.err != nil {
		b.finish(e, unjournalled(e.call, t.recorded.err))
		return
	}
	granted, refused := t.budget.Reserve(now, budget.Infinite)
	if refused != "" {
		b.deny(e, api.ReasonTurnBudget, deciderBudget, string(refused))
		return
	}
	e.stage, e.since, e.counted = stageRunning, now, true
	b.beginTrace(e)
	request := b.requestOf(e, e.call.Until.left(granted, now))
	if e.gate = gated; gated != nil {
		request.OnRecord = gated.wait
	}
	events := make(chan api.Event, eventBuffer)
	request.Events, request.EventOutputBytes = events, b.t.m.config.EventOutputBytes
	e.running = newStarting()
	ended := make(chan *api.Result, 1)
	t.helpers.Go(func() { b.run(e, request, ended) })
	t.helpers.Go(func() { b.forward(e, events, ended) })
}

// shortWait for a slot leaves a call what it was granted.
const shortWait = 100 * time.Millisecond

// leftOnEntry is what the turn has left for a call that has waited for its slot, which other calls may have used
// meanwhile.
func (e *entry) leftOnEntry(t *Turn) (left time.Duration, err error) {
	left = budget.Infinite
	t.do(func() {
		now := t.now()
		if e.begun || now.Sub(e.since) < shortWait { // a further round keeps to the time of all
			return
		}
		if e.spent = t.budget.Refuses(now); e.spent != "" {
			err = errors.New(string(e.spent))
			return
		}
		if within, bounded := t.budget.Remaining(now); bounded {
			left = within
		}
		left = max(e.call.Until.left(left, now).Truncate(time.Millisecond), time.Millisecond)
	})
	return left, err
}

// beforeStart has what came before a call on record, or returns the gate that the call has
// to wait at: the next flush opens it.
func (b *batch) beforeStart() *gate {
	t := b.t
	switch {
	case len(t.outbox) == 0 || t.patience.begin && !slices.ContainsFunc(t.outbox, t.patience.urgent):
	case !t.m.config.StartWaits:
		t.flush()
	case t.recorded.gate == nil:
		t.recorded.gate = &gate{open: make(chan struct{})}
	}
	return t.recorded.gate
}

// count has the turn's clock of tool time run for a call that has begun, or
// stand still.
func (b *batch) count(e *entry, on bool) {
	switch {
	case e.counted == on || e.stage != stageRunning:
		return
	case on:
		b.t.budget.Again(b.t.now())
	default:
		b.t.budget.Release(b.t.now())
	}
	e.counted = on
}

// eventBuffer is how far the turn may lag behind one call before the call's
// events count as missed.
const eventBuffer = 64

// requestOf fills in the tool's template.
func (b *batch) requestOf(e *entry, granted time.Duration) supervisor.Request {
	r := e.tool.Request
	r.Name = cmp.Or(r.Name, e.call.Tool)           // the model knows the tool by no other
	if r.Command == nil || r.Command.Tool != nil { // a plain command's are its argv, and only shown
		r.Arguments, r.Meta, r.Client = e.call.Arguments, api.WithTraceParent(e.call.Meta, e.trace), e.call.Client
	}
	if granted != budget.Infinite {
		r.Timeouts = append(slices.Clone(r.Timeouts), budget.Ask{Layer: budget.LayerClient, TimeoutUnset: true, Max: max(granted.Truncate(time.Millisecond), time.Millisecond), Detail: "what is left of the turn"})
	}
	if e.program != "" && r.Command == nil && !r.Tool.Adapter {
		r.SHA256 = cmp.Or(r.SHA256, e.program) // what was approved is what runs
	}
	r.Place = b.t.placeOf(e)
	if e.tool.ChildTurns {
		r.Host = b.t.children(e)
	}
	if _, bounded := b.t.budget.Remaining(b.t.now()); bounded || !e.call.Until.At.IsZero() {
		r.Left = func() (time.Duration, error) { return e.leftOnEntry(b.t) }
	}
	r.LogArgs = []any{"turn", b.t.info.TurnID, "call", e.key}
	r.Placed = func(worker string, attempt int) error { return b.placed(e, worker, attempt) }
	r.Ask = func(ctx context.Context, q supervisor.Question) supervisor.Answer { return b.question(ctx, e, q) }
	return r
}

// placed puts on record that a worker of a fleet is about to start the call. It is called
// by who runs the call, and waits for the owner.
func (b *batch) placed(e *entry, worker string, attempt int) (err error) {
	event := b.event(e, api.EventPlaced)
	event.Worker, event.Attempt = worker, attempt
	if !b.t.do(func() {
		b.t.emit(event, nil)
		b.t.flush()
		if err = b.t.recorded.err; err == nil {
			e.gate = nil // whatever kept its beginning off the record has passed
		}
		e.worker = worker
	}) {
		return errors.New("the turn is over")
	}
	return err
}

// placeOf is where a call stands.
func (t *Turn) placeOf(e *entry) api.Place {
	return api.Place{
		CallID: e.key, TurnID: t.info.TurnID, SessionID: t.info.SessionID, AgentID: t.info.AgentID,
		ParentTurnID: t.info.ParentTurnID, Depth: t.info.Depth,
	}
}

// children serves the call's own turns; nil if nobody does.
func (t *Turn) children(e *entry) func(net.Listener) {
	child, of := t.m.config.Child, t.placeOf(e)
	if child == nil {
		e.noteSetting("its tool can begin no turns of its own: only toolhost serve has them")
		return nil
	}
	return func(l net.Listener) { child(l, of) }
}

// starting stands in for a call until the supervisor has begun it: preparing
// one can take a Describe, which the owner does not wait for and an abort cuts
// short.
type starting struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	ready   chan struct{}
	running Running       // written before ready is closed
	reason  api.Reason    // of the first abort; the owner's, who writes it once
	early   bool          // that one came before ready
	after   chan func()   // to the owner, behind the events so far
	over    chan struct{} // closed when after is read no more
}

func newStarting() *starting {
	s := &starting{ready: make(chan struct{}), after: make(chan func()), over: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// begun is what the supervisor runs; nil before it has begun.
func (s *starting) begun() Running {
	if s == nil {
		return nil
	}
	select {
	case <-s.ready:
		return s.running
	default:
		return nil
	}
}

// abort is called by the owner, and doesn't wait. A second one kills, so only one for the
// reason user counts as that, which somebody wants: one event, such as the end of a parent
// or of the daemon, may come to the call by several ways.
func (s *starting) abort(reason api.Reason) {
	switch {
	case s.reason == "":
		s.reason = reason
	case reason != api.ReasonUser:
		return
	}
	select {
	case <-s.ready:
		s.running.Abort(s.reason)
	default:
		s.early = true
		s.cancel(supervisor.AbortCause(s.reason))
		go func() {
			<-s.ready
			s.running.Abort(s.reason)
		}()
	}
}

// run is a helper for one call, which it makes.
func (b *batch) run(e *entry, request supervisor.Request, ended chan<- *api.Result) {
	s := e.running
	stack.Middle()
	request.Rounds = true
	s.running = &rounds{b: b, e: e, s: s, request: request, running: b.t.m.config.Start(s.ctx, request)}
	close(s.ready)
	ended <- s.running.Result()
}

// forward is the other helper: it passes the call's events on, those that are there at
// once together, and its result.
func (b *batch) forward(e *entry, events <-chan api.Event, ended <-chan *api.Result) {
	defer e.running.cancel(nil)
	for {
		select {
		case event := <-events:
			some := append([]api.Event{event}, waiting(events)...)
			b.t.post(func() { b.happened(e, some) })
		case f := <-e.running.after:
			some := waiting(events)
			b.t.post(func() {
				b.happened(e, some)
				f()
			})
		case result := <-ended:
			close(e.running.over)
			b.t.post(func() {
				b.happened(e, waiting(events))
				b.ended(e, result)
			})
			return
		}
	}
}

// afterEvents has the owner run f after the call's events so far, and waits
// for it; false if the turn is over.
func (b *batch) afterEvents(s *starting, f func()) bool {
	ran := make(chan struct{})
	select {
	case s.after <- func() { defer close(ran); f() }:
	case <-s.over:
		return b.t.do(f)
	}
	select {
	case <-ran:
		return true
	case <-b.t.done:
		return false
	}
}

// waiting takes the events that are there, at most a buffer of them.
func waiting(events <-chan api.Event) (list []api.Event) {
	for range eventBuffer {
		select {
		case event := <-events:
			list = append(list, event)
		default:
			return list
		}
	}
	return list
}

// reaped tells that processes which had to be killed are gone; of those that could
// not be, once they are, unless the turn is over before.
func (b *batch) reaped(e *entry, k api.Kill) {
	event := b.event(e, api.EventReaped)
	event.Reaped = k.Reaped + k.Survivors
	switch call, ok := e.running.running.(Processes); {
	case k.Survivors > 0 && ok:
		b.t.helpers.Go(func() {
			select {
			case <-call.Gone():
				b.t.post(func() { b.t.emit(event, nil) })
			case <-b.t.done:
			}
		})
	case k.Survivors == 0 && k.Stage != "none":
		b.t.emit(event, nil)
	}
}

// happened turns a call's events into some of the turn's. The turn has its own
// beginning and end of a call.
func (b *batch) happened(e *entry, list []api.Event) {
	for _, from := range list {
		switch from.Kind {
		case api.EventQueued:
			b.count(e, false) // it waits for its place, or for its data
			e.queued = true
			continue
		case api.EventFinished, api.EventFailed:
			e.missed = from.Missed
			continue
		case api.EventStarted:
			b.count(e, true)
			e.queued = false
			if e.timeout != 0 || e.begun { // another round
				continue
			}
			e.begun = true
			e.timeout = from.TimeoutMs
		}
		from.CallID, from.Tool = e.key, e.call.Tool
		b.t.emit(from, nil)
	}
}
