package worker

import (
	"context"
	"iter"
	"runtime"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// begin starts the tool.
func (w *Worker) begin(a *attempt) {
	o := &outlet{kick: make(chan struct{}, 1), nobody: make(chan struct{}), questions: newQuestions()}
	a.out.Store(o)
	a.asked = nil
	ctx, cancel := context.WithCancelCause(context.Background())
	a.cancel = cancel
	w.calls.Go(func() {
		defer cancel(nil)
		w.traced(a, func() (*api.Result, time.Time) { return w.run(ctx, a, o) })
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unread--                                        // see ended
		a.planned, a.cancel, a.runs = planned{}, nil, nil // it is remembered, and needs to hold nothing
	})
}

// run makes the call and sends what comes of it. It returns when the caller has the
// result, or is not expected to take it any more.
func (w *Worker) run(ctx context.Context, a *attempt, o *outlet) (result *api.Result, ended time.Time) {
	defer o.done.Store(true)
	events := make(chan api.Event, eventBuffer)
	own := supervisor.Own{Meta: a.request.Meta, Events: events, Lease: a.lease, Left: a.left}
	if a.Asks {
		own.Ask = o.questions.ask
	}
	call := w.start(ctx, a, own)
	w.running(a, call)
	runtime.Gosched() // the call may go first
	out := newBurst(a.Quiet, func(f *fleetv1.Frame) { w.say(w.data, a, f) })
	defer out.stop()
	out.add(&fleetv1.Frame{What: &fleetv1.Frame_Started{Started: a.begun}})
	for running := true; running; {
		select {
		case event := <-events:
			out.event(event)
		case d := <-o.questions.say:
			out.force(d)
			out.flush()
		case <-out.due.C:
			out.flush()
		case <-o.kick:
			out.acked(o.acked.Load())
		case <-out.overdue.C:
			out.again()
		case <-call.Done():
			running = false
		}
	}
	close(o.questions.over)
	for range len(events) {
		out.event(<-events)
	}
	result = call.Result()
	next, stop := iter.Pull(portable.Pieces(result))
	defer stop()
	piece, more := next()
	w.ended(a, call)
	ended = time.Now()
	out.heard = ended // the result gets its time
	for more || !out.data.Done() {
		for more && out.push(dataOf(piece)) {
			piece, more = next()
		}
		out.flush()
		select {
		case <-o.kick:
			out.acked(o.acked.Load())
		case <-out.overdue.C:
			out.again()
			if time.Since(out.heard) > keepResult {
				w.config.Logger.Warn("the caller has not taken a result, and it is dropped", "call", a.request.ID)
				w.dropped(a)
				return result, ended
			}
		case <-o.nobody:
			return result, ended
		case <-w.closed:
			return result, ended
		}
	}
	return result, ended
}

// dropped has a caller that asks about the call hear that its result will not come.
func (w *Worker) dropped(a *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.state, _ = a.state.Forget()
}
