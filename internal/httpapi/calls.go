package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// run runs a batch. Nothing of it goes on for a client that has gone: the turn
// is aborted.
func (s *Server) run(q *request) error {
	t, err := s.activeTurn(q)
	if err != nil {
		return err
	}
	calls, err := q.batch()
	if err != nil {
		return err
	}
	if err := s.accepts(); err != nil {
		return err
	}
	a := s.attach(t, false)
	release, err := s.hold(a)
	if err != nil {
		return err
	}
	defer release()
	ctx, stop := q.connected(turn.ErrDisconnected)
	defer stop()
	s.prepareTools(ctx, t, calls)
	if q.wantsStream() {
		return s.runStreamed(ctx, q, a, calls)
	}
	results, err := t.Run(ctx, calls)
	if err != nil {
		return notRun(t, err)
	}
	if hasLeft(ctx) {
		t.End()
	}
	return q.answer(client.Results{Results: results})
}

// hasLeft is whether the client went away before its batch had results. Then no
// more can come of the turn, which was aborted, and nobody is there to end it.
func hasLeft(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), turn.ErrDisconnected)
}

// prepareTools is done before the batch has the turn, which then waits for
// nothing.
func (s *Server) prepareTools(ctx context.Context, t *turn.Turn, calls []turn.Call) {
	if s.config.Prepare == nil {
		return
	}
	var names []string
	for _, c := range calls {
		if !slices.Contains(names, c.Tool) {
			names = append(names, c.Tool)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-t.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	s.config.Prepare(ctx, names)
	cancel()
	watching.Wait()
}

func (q *request) batch() ([]turn.Call, error) {
	var batch client.Batch
	if err := q.decode(&batch); err != nil {
		return nil, err
	}
	calls := make([]turn.Call, len(batch.Calls))
	for i, c := range batch.Calls {
		calls[i] = turn.Call{ID: c.ID, Tool: c.Tool, Arguments: c.Arguments, Meta: c.Meta, TraceParent: q.traceParent(c.Meta)}
	}
	return calls, nil
}

// traceParent is the trace that a call belongs to (W3C Trace Context): its own
// word, as in MCP, before that of the request.
func (q *request) traceParent(meta json.RawMessage) string {
	var own struct {
		TraceParent string `json:"traceparent"`
	}
	if len(meta) > 0 && json.Unmarshal(meta, &own) == nil && own.TraceParent != "" {
		return own.TraceParent
	}
	return q.r.Header.Get("traceparent")
}

// notRun says why a batch is none.
func notRun(t *turn.Turn, err error) error {
	info, active := t.Info()
	switch {
	case !active:
		return notActive(t.ID())
	case len(info.CurrentTools) > 0:
		return refuse(codeConflict, "the turn runs another batch", "wait for its results, or begin another turn")
	}
	return refuse(codeInvalid, printable(err.Error()), "correct the batch")
}

// ran is what a batch came to.
type ran struct {
	results []*supervisor.Result
	err     error
}

// runStreamed shows what happens while the batch runs.
func (s *Server) runStreamed(ctx context.Context, q *request, a *attached, calls []turn.Call) error {
	free, err := s.takeStream()
	if err != nil {
		return err
	}
	defer free()
	begin := a.t.Newest()
	b := &batchStream{s: s, q: q, t: a.t, seq: begin, events: subscribe(a.t, begin)}
	defer b.close()
	ctx, b.cancel = context.WithCancelCause(ctx)
	defer b.cancel(nil)
	done := make(chan ran, 1)
	go func() {
		results, err := a.t.Run(ctx, calls)
		done <- ran{results, err}
	}()
	for c := b.events.C; ; {
		select {
		case record, ok := <-c:
			if ok {
				b.show(record)
			}
			if !ok && !b.resume() {
				c = nil // the turn is over, and the results are near
				continue
			}
			c = b.events.C
		case <-b.beat():
			b.try(b.st.comment("heartbeat"))
		case r := <-done:
			left := hasLeft(ctx) // not for having all that it asked for
			err := b.finish(r)
			if r.err == nil && (left || b.gone) {
				a.t.End()
			}
			return err
		}
	}
}

// batchStream tells one client of one batch.
type batchStream struct {
	s      *Server
	q      *request
	t      *turn.Turn
	seq    int64 // of the newest event that was shown
	events *turn.Subscription
	cancel context.CancelCauseFunc
	st     *stream // from the first event on: then the batch is one
	gone   bool    // the client takes nothing any more
}

func (b *batchStream) close() {
	b.events.Close()
	if b.st != nil {
		b.st.close()
	}
}

func (b *batchStream) beat() <-chan time.Time {
	if b.st == nil {
		return nil
	}
	return b.st.beat.C
}

// try notes that the client has gone, and has the batch aborted.
func (b *batchStream) try(err error) {
	if err != nil && !b.gone {
		b.gone = true
		b.cancel(turn.ErrDisconnected)
	}
}

func (b *batchStream) open() {
	if b.st == nil {
		var err error
		b.st, err = b.s.openStream(b.q)
		b.try(err)
	}
}

// show sends an event, and those that wait behind it.
func (b *batchStream) show(record *turn.Record) {
	b.open()
	for more := true; more; {
		b.fill(record.Event.Seq - 1)
		b.seq = record.Event.Seq
		b.st.put(record.Event.Seq, record.Event.Kind, record.JSON)
		more = false
		if b.st.buf.Len() < pieceBytes {
			select {
			case record, more = <-b.events.C:
			default:
			}
		}
	}
	b.send()
}

// fill shows what the turn held no longer when the client was ready for it.
func (b *batchStream) fill(to int64) {
	if b.seq >= to || b.gone {
		return
	}
	w := &watcher{s: b.s, st: b.st, turnID: b.t.ID(), seq: b.seq, ctx: b.q.r.Context()}
	if !w.catchUp(to) {
		b.try(turn.ErrDisconnected)
	}
}

func (b *batchStream) send() {
	if b.gone {
		b.st.buf.Reset()
		return
	}
	b.try(b.st.send())
}

// resume goes on where the client was too slow; false if there is no more.
func (b *batchStream) resume() bool {
	if !b.events.Gap() {
		return false
	}
	b.events = subscribe(b.t, b.events.Last())
	return true
}

// finish sends what is left of the events, and the results.
func (b *batchStream) finish(r ran) error {
	if r.err != nil && b.st == nil {
		return notRun(b.t, r.err)
	}
	b.open()
	for b.more() {
	}
	kind, value := kindResults, any(client.Results{Results: r.results})
	if r.err != nil {
		refused, _ := errors.AsType[*client.Error](notRun(b.t, r.err))
		kind, value = kindError, client.Failure{Error: *refused}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	b.st.put(0, kind, raw)
	b.send()
	return nil
}

// more sends the events that are there already: all of the batch's, once it has
// its results.
func (b *batchStream) more() bool {
	select {
	case record, ok := <-b.events.C:
		if ok {
			b.show(record)
			return true
		}
		return b.resume()
	default:
		return false
	}
}
