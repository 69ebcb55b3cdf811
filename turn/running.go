package turn

import (
	"context"
	"slices"
	"time"

	"github.com/toolhost/toolhost/budget"
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
	t.flush() // what came before is on record, or nothing new is begun
	if t.journalErr != nil {
		b.finish(e, unjournalled(e.call, t.journalErr))
		return
	}
	granted, refused := t.budget.Reserve(now, budget.Infinite)
	if refused != "" {
		b.deny(e, "turn_budget", deciderBudget, string(refused))
		return
	}
	e.stage, e.since = stageRunning, now
	request := b.requestOf(e, granted)
	events := make(chan supervisor.Event, subscriberBuffer)
	request.Events = events
	e.running = &starting{ready: make(chan struct{})}
	holder := e.running.(*starting)
	t.helpers.Go(func() { b.run(e, holder, request, events) })
}

// requestOf fills in the tool's template.
func (b *batch) requestOf(e *entry, granted time.Duration) supervisor.Request {
	r := e.tool.Request
	r.Arguments, r.Meta = e.call.Arguments, e.call.Meta
	if granted != budget.Infinite {
		r.Timeouts = append(slices.Clone(r.Timeouts), budget.Ask{Layer: budget.LayerClient, TimeoutUnset: true, Max: granted, Detail: "what is left of the turn"})
	}
	r.Ask = func(ctx context.Context, q supervisor.Question) supervisor.Answer { return b.question(ctx, e, q) }
	return r
}

// starting stands in for a call until the supervisor has begun it: preparing
// one can take a Describe, and the owner does not wait for that.
type starting struct {
	ready   chan struct{}
	running Running // written before ready is closed
}

func (s *starting) Abort(reason supervisor.AbortReason) {
	select {
	case <-s.ready:
		s.running.Abort(reason)
	default:
		go func() { // the owner doesn't wait
			<-s.ready
			s.running.Abort(reason)
		}()
	}
}

func (s *starting) Result() *supervisor.Result {
	<-s.ready
	return s.running.Result()
}

// run is a helper for one call: it forwards what happens and hands over the
// result.
func (b *batch) run(e *entry, s *starting, request supervisor.Request, events chan supervisor.Event) {
	forwarded := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(forwarded)
		b.forward(e, events, stop)
	}()
	s.running = b.t.m.config.Start(context.Background(), request)
	close(s.ready)
	result := s.running.Result()
	close(stop)
	<-forwarded
	b.t.post(func() { b.ended(e, result) })
}

// forward passes a call's events on until stop, and then what is left of them.
func (b *batch) forward(e *entry, events <-chan supervisor.Event, stop <-chan struct{}) {
	for {
		select {
		case event := <-events:
			b.t.post(func() { b.happened(e, event) })
		case <-stop:
			for {
				select {
				case event := <-events:
					b.t.post(func() { b.happened(e, event) })
				default:
					return
				}
			}
		}
	}
}

// happened turns a call's event into one of the turn's. The turn has its own
// beginning and end of a call.
func (b *batch) happened(e *entry, from supervisor.Event) {
	switch from.Kind {
	case supervisor.EventQueued, supervisor.EventFinished, supervisor.EventFailed:
		return
	}
	event := b.event(e, string(from.Kind))
	event.ElapsedMs, event.Status, event.Fraction, event.Message = from.ElapsedMs, from.Status, from.Fraction, from.Message
	event.Stream, event.Content, event.TimeoutMs, event.Missed = from.Stream, from.Content, from.TimeoutMs, from.Missed
	b.t.emit(event, nil)
}
