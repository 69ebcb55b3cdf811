package journal

import (
	"strings"

	"github.com/toolhost/toolhost/api"
)

// rows are what a transaction adds. Each is written once, at its end: most turns are one
// call, which begins and ends in one.
type rows struct {
	turns  []*turnState
	calls  []*callRow
	events []any // the values of each, one behind the other
}

// turnRow is what turnState has not.
type turnRow struct {
	name    string
	began   int64
	ended   any // nil, or the time
	aborted bool
	reason  api.Reason
}

// callState is what Append must know of a call.
type callState struct {
	over bool
	row  *callRow // while the database has none
}

type callRow struct {
	turn           *turnState
	name, tool     string
	queued         int64
	started, ended any // nil, or the time
	outcome        Outcome
	sum            int64 // of the result
}

const (
	eventValues = 9
	// eventsAtOnce are those of a turn that is one call which ends well.
	eventsAtOnce = 5
)

func insertEvents(n int) string {
	return "INSERT INTO events (pos, turn, seq, time, kind, call_id, tool, json, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)" +
		strings.Repeat(", (?, ?, ?, ?, ?, ?, ?, ?, ?)", n-1)
}

func (r *rows) addEvent(pos, turn int64, e *Event) {
	r.events = append(r.events, pos, turn, e.Seq, e.Time.UnixNano(), string(e.Kind), e.CallID, e.Tool, e.JSON, e.sum(pos))
}

func (r *rows) queueCall(turn *turnState, e *Event) {
	row := &callRow{turn: turn, name: e.CallID, tool: e.Tool, queued: e.Time.UnixNano(), outcome: Outcome{Status: api.StatusOpen}}
	turn.calls[e.CallID] = callState{row: row}
	r.calls = append(r.calls, row)
}

func (r *rows) write(do *statements) error {
	for _, t := range r.turns {
		bytes := int64(0)
		if t.ended {
			bytes = t.bytes
		}
		if err := run(do.turn, t.id, t.row.name, t.row.began, t.owner, t.row.ended, t.row.aborted, string(t.row.reason), bytes); err != nil {
			return taken(t.row.name, err)
		}
	}
	if err := r.writeEvents(do); err != nil {
		return err
	}
	for _, c := range r.calls {
		if err := c.write(do); err != nil {
			return err
		}
	}
	return nil
}

func (r *rows) writeEvents(do *statements) error {
	for values := r.events; len(values) > 0; {
		insert, n := do.event, eventValues
		if len(values) >= eventsAtOnce*eventValues {
			insert, n = do.events, eventsAtOnce*eventValues
		}
		if err := run(insert, values[:n]...); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}

func (c *callRow) write(do *statements) error {
	o := c.outcome
	id, err := insert(do.call, c.turn.id, c.name, c.tool, c.queued, c.started, string(o.Status), string(o.Reason), c.ended, o.Elapsed.Milliseconds())
	if err != nil || o.Result == nil {
		return err
	}
	return run(do.resultOf, o.Result, c.sum, id)
}

// forget drops the rows, which the database has now, or will never have.
func (r *rows) forget() {
	for _, t := range r.turns {
		t.row = nil
	}
	for _, c := range r.calls {
		c.turn.calls[c.name] = callState{over: c.ended != nil}
	}
	clear(r.turns)
	clear(r.calls)
	clear(r.events)
	r.turns, r.calls, r.events = r.turns[:0], r.calls[:0], r.events[:0]
}

func (w *writer) startCall(turn *turnState, e *Event) error {
	at := e.Time.UnixNano()
	if row := turn.calls[e.CallID].row; row != nil {
		row.started = at
		return nil
	}
	return run(w.do.startCall, at, turn.id, e.CallID)
}

func (w *writer) endCall(turn *turnState, e *Event) error {
	o, at, sum := e.Outcome, e.Time.UnixNano(), int64(0)
	if o.Result != nil {
		sum = rowSum(nil, e.TurnID, e.CallID, string(o.Result))
	}
	if row := turn.calls[e.CallID].row; row != nil {
		row.ended, row.outcome, row.sum = at, *o, sum
		return nil
	}
	err := run(w.do.endCall, string(o.Status), string(o.Reason), at, o.Elapsed.Milliseconds(), turn.id, e.CallID)
	if err != nil || o.Result == nil {
		return err
	}
	return run(w.do.result, o.Result, sum, turn.id, e.CallID)
}

func (w *writer) abortTurn(turn *turnState, e *Event) error {
	reason := api.Reason("")
	if e.Outcome != nil {
		reason = e.Outcome.Reason
	}
	if turn.row != nil {
		turn.row.aborted, turn.row.reason = true, reason
		return nil
	}
	return run(w.do.abortTurn, string(reason), turn.id)
}

func (w *writer) endTurn(turn *turnState, e *Event) error {
	at := e.Time.UnixNano()
	if turn.row != nil {
		turn.row.ended = at
		return nil
	}
	return run(w.do.endTurn, at, turn.bytes, turn.id)
}
