package worker

import (
	"iter"
	"runtime"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	"github.com/toolhost/toolhost/fleet/internal/stream"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// run makes the call and sends what comes of it. It returns when the caller has the
// result, or is not expected to take it any more.
func (w *Worker) run(a *attempt, o *outlet) (result *api.Result, ended time.Time) {
	defer o.done.Store(true)
	events := make(chan api.Event, eventBuffer)
	own := supervisor.Own{Meta: a.request.Meta, Events: events, Lease: a.lease}
	if a.Asks {
		own.Ask = o.questions.ask
	}
	call := a.start(w.host, own)
	w.running(a, call)
	runtime.Gosched() // the call may go first
	w.say(w.control, a, &fleetv1.Frame{What: &fleetv1.Frame_Started{Started: a.begun}})
	var s stream.Sender[*fleetv1.Data]
	again := time.NewTicker(againAfter)
	defer again.Stop()
	heard := time.Now()
	sent := func() { // what the acknowledgement so far allows
		if s.Ack(o.acked.Load()) {
			heard = time.Now()
		}
	}
	for running := true; running; {
		select {
		case event := <-events:
			w.event(a, &s, event)
		case d := <-o.questions.say:
			w.send(a, &s, d)
		case <-o.kick:
			sent()
		case <-again.C:
			sent()
			if time.Since(heard) >= againAfter {
				w.again(a, &s)
			}
		case <-call.Done():
			running = false
		}
	}
	close(o.questions.over)
	for range len(events) {
		w.event(a, &s, <-events)
	}
	result = call.Result()
	next, stop := iter.Pull(portable.Pieces(result))
	defer stop()
	piece, more := next()
	w.ended(a, call)
	ended = time.Now()
	for more || !s.Done() {
		for more && w.push(a, &s, dataOf(piece)) {
			piece, more = next()
		}
		select {
		case <-o.kick:
			sent()
		case <-again.C:
			sent()
			w.again(a, &s)
			if time.Since(ended) > keepResult && time.Since(heard) > keepResult {
				w.config.Logger.Warn("the caller has not taken a result, and it is dropped", "call", a.request.ID)
				return result, ended
			}
		case <-w.closed:
			return result, ended
		}
	}
	return result, ended
}

// event sends an event, if there is credit for it, and the caller does not make it itself.
func (w *Worker) event(a *attempt, s *stream.Sender[*fleetv1.Data], e api.Event) {
	s.Drop(e.Missed)
	if e.Missed = 0; a.Quiet && e.Kind != api.EventOutput || !slices.Contains(portable.WorkersEvents, e.Kind) {
		return
	}
	d := encode(e)
	size := proto.Size(d)
	if size > maxEventBytes {
		s.Drop(1) // the result has what is in it
	} else if f, ok := s.Lossy(d, size); ok {
		w.frame(a, f)
	}
}

// push sends a frame if there is credit.
func (w *Worker) push(a *attempt, s *stream.Sender[*fleetv1.Data], d *fleetv1.Data) bool {
	f, ok := s.Push(d, proto.Size(d))
	if ok {
		w.frame(a, f)
	}
	return ok
}

// send sends a frame with or without credit: one of those that others bound.
func (w *Worker) send(a *attempt, s *stream.Sender[*fleetv1.Data], d *fleetv1.Data) {
	w.frame(a, s.Force(d, proto.Size(d)))
}

// again sends what was not acknowledged.
func (w *Worker) again(a *attempt, s *stream.Sender[*fleetv1.Data]) {
	for _, f := range s.Unacked() {
		w.frame(a, f)
	}
}

func (w *Worker) frame(a *attempt, f stream.Frame[*fleetv1.Data]) {
	f.Payload.Seq, f.Payload.Missed = f.Seq, f.Missed
	w.say(w.data, a, &fleetv1.Frame{What: &fleetv1.Frame_Data{Data: f.Payload}})
}
