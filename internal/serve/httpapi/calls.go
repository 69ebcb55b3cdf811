package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

// run runs a batch. Nothing of it goes on for a client that has gone: the turn
// is aborted.
func (s *Server) run(q *request) error {
	t, err := s.activeTurn(q)
	if err != nil {
		return err
	}
	var batch api.Batch
	if err := q.decode(&batch); err != nil {
		return err
	}
	return s.runIn(q, t, q.calls(batch), t.Newest())
}

// runAlone runs a batch in a turn of its own.
func (s *Server) runAlone(q *request) error {
	var asked api.BatchTurn
	if err := q.decode(&asked); err != nil {
		return err
	}
	calls := q.calls(asked.Batch)
	if err := turn.CheckBatch(calls); err != nil {
		return wrongBatch(err)
	}
	t, err := s.beginFor(q, asked.TurnSpec, true)
	if err != nil {
		return err
	}
	defer t.End()
	return s.runIn(q, t, calls, 0)
}

// runIn shows events behind seq, where the client wants to see them.
func (s *Server) runIn(q *request, t *turn.Turn, calls []turn.Call, seq int64) error {
	ctx, stop, err := s.engage(q, t)
	if err != nil {
		return err
	}
	defer stop()
	if q.wantsStream() {
		return s.runStreamed(ctx, q, t, calls, seq)
	}
	results, err := t.RunBatch(ctx, calls)
	if err != nil {
		return notRun(t, err)
	}
	defer results.Close()
	if clientGone(ctx) {
		t.End()
	}
	if isShutOut(ctx) {
		return errShutOut
	}
	return answerList(q, "results", results.All(), nil)
}

// clientGone reports whether the client went away before its batch had results, or may not
// use the daemon any more. Then no more can come of the turn, which was aborted, and
// nobody is there to end it.
func clientGone(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), turn.ErrDisconnected) || isShutOut(ctx)
}

// errShutOut is why a request ends whose client may not use the daemon any more: it is
// answered nothing that has come of it.
var errShutOut = refuse(codeForbidden, "you may not use this daemon any more: what was asked for is aborted", "ask its operator to allow it")

func isShutOut(ctx context.Context) bool { return context.Cause(ctx) == errShutOut }

// calls are those of a batch, as the turn runs them.
func (q *request) calls(batch api.Batch) []turn.Call {
	calls := make([]turn.Call, len(batch.Calls))
	for i, c := range batch.Calls {
		calls[i] = turn.Call{ID: c.ID, Tool: c.Tool, Arguments: c.Arguments, Meta: c.Meta, Retry: c.Retry, TraceParent: q.traceParent(c.Meta)}
	}
	return calls
}

// traceParent is the trace that a call belongs to (W3C Trace Context): its own
// word, as in MCP, before that of the request.
func (q *request) traceParent(meta json.RawMessage) string {
	return cmp.Or(api.TraceParent(meta), q.r.Header.Get("traceparent"))
}

// notRun returns the error of a batch that did not run.
func notRun(t *turn.Turn, err error) error {
	info, active := t.Info()
	switch {
	case !active:
		return notActive(t.ID())
	case len(info.CurrentTools) > 0:
		return refuse(codeConflict, "the turn runs another batch", "wait for its results, or begin another turn")
	}
	return wrongBatch(err)
}

func wrongBatch(err error) error {
	return refuse(codeInvalid, printable(err.Error()), "correct the batch")
}

// ran is what a batch came to.
type ran struct {
	results *turn.Results // nil with an err
	err     error
}

// runStreamed shows what happens while the batch runs.
func (s *Server) runStreamed(ctx context.Context, q *request, t *turn.Turn, calls []turn.Call, seq int64) error {
	free, err := s.streams.take(q.who)
	if err != nil {
		return err
	}
	defer free()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	running, ended := context.WithCancel(context.Background())
	shown, hide := context.WithCancel(running)
	defer context.AfterFunc(ctx, func() {
		if isShutOut(ctx) {
			hide()
		}
	})()
	var r ran
	go func() {
		defer ended()
		r.results, r.err = t.RunBatch(ctx, calls)
	}()
	st := s.newStream(q)
	defer st.close()
	if errors.Is(st.follow(shown, t, seq), errGone) {
		abort(turn.ErrDisconnected)
	}
	if isShutOut(ctx) {
		go func() {
			<-running.Done()
			r.results.Close()
			t.End()
		}()
		return st.shutOut()
	}
	<-running.Done()
	defer r.results.Close()
	left := clientGone(ctx) // not for having all that it asked for
	gone, err := st.finish(t, r)
	if r.err == nil && (left || gone) {
		t.End()
	}
	return err
}

// shutOut ends a stream whose client is to read nothing more but that.
func (st *stream) shutOut() error {
	st.buf.Reset()
	_, err := st.fail(errShutOut)
	return err
}

// finish sends the results after all events of the batch. A batch that did
// not run and had no events is answered with the error.
func (st *stream) finish(t *turn.Turn, r ran) (gone bool, err error) {
	if r.err == nil {
		return sendList(st, kindResults, "results", r.results.All()) != nil, nil
	}
	return st.fail(notRun(t, r.err))
}

// fail ends a stream with an error, which is the answer of one that has not begun.
func (st *stream) fail(refused error) (gone bool, err error) {
	if !st.opened {
		return false, refused
	}
	raw, err := json.Marshal(api.Failure{Error: *failureOf(refused)})
	if err != nil {
		return false, err
	}
	st.put(0, kindError, raw)
	return st.send() != nil, nil
}

// engage holds a turn for what a request wants of it, unless the daemon is
// stopping. ctx ends when the client goes away, and when it may not use the daemon any
// more; stop must be called.
func (s *Server) engage(q *request, t *turn.Turn) (ctx context.Context, stop func(), err error) {
	if err := s.accepts(); err != nil {
		return nil, nil, err
	}
	release, err := s.leases.hold(t)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(q.r.Context()))
	unhook := context.AfterFunc(q.r.Context(), func() { cancel(turn.ErrDisconnected) })
	known, forget := s.whileKnown(context.Background(), q.who)
	unwatch := context.AfterFunc(known, func() { cancel(errShutOut) })
	return ctx, func() { unhook(); unwatch(); forget(); cancel(nil); release() }, nil
}
