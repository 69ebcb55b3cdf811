package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
)

// writer is the owner's connection with what it remembers. Only who holds Journal.mu uses it.
type writer struct {
	dir      string
	log      hclog.Logger
	database *database
	do       statements
	// turns are the open ones, as committed or, within a transaction, as they will be.
	turns   map[string]*turnState
	pos     int64 // of the last event
	lastID  int64 // of a turn, ever
	rows    rows  // of the transaction
	commits int   // since the log was written to the file
	pruner  pruner
	held    holdings
	// auditBytes are those of audit records, 0 until they are counted.
	auditBytes int64
	damaged    bool // SQLite has said that the database is corrupt
	// condemned is why nothing is written any more.
	condemned error
	files     files
}

// turnState is what Append must know of a turn.
type turnState struct {
	sequence
	id    int64    // turns.id
	row   *turnRow // while the database has none
	owner string
	bytes int64 // what it holds
	fresh int64 // of these, what its owner's holding lacks
	// counted: they are among those of turns that have ended.
	counted bool
}

func newWriter(ctx context.Context, dir string, d *database, o Options) (*writer, error) {
	w := &writer{dir: dir, files: files{dir: dir}, log: o.Logger, database: d, turns: map[string]*turnState{}}
	w.pruner.limits, w.pruner.now = o.Retention.Defaulted(), o.Now
	w.pruner.begin(nil)
	w.held.limit, w.held.of = o.OwnerBytes, map[string]holding{}
	if err := errors.Join(w.files.hold(DatabaseName), w.do.prepare(ctx, d.conn), w.held.load(ctx, d.conn)); err != nil {
		return w, err
	}
	return w, errors.Join(w.do.lastPos.QueryRow().Scan(&w.pos), w.do.lastID.QueryRow().Scan(&w.lastID))
}

func (w *writer) close() error {
	return errors.Join(w.do.close(), w.database.close())
}

// commitGroup commits the requests together and answers them. If that fails, each is tried alone, so that one bad or
// too large request fails nobody else's. What was appended ahead must not fail: from the first that the database cannot
// take now, the group is left, and why is returned as well.
func (w *writer) commitGroup(group []*request) (left []*request, err error) {
	if err = w.transact(group); err == nil {
		answer(group, nil)
		return nil, nil
	}
	for i, r := range group {
		if len(group) > 1 {
			err = w.transact([]*request{r})
		}
		switch {
		case !r.ahead():
			r.reply <- err
		case err != nil && !refused(err):
			return group[i:], err
		case err != nil:
			r.refused = true
			w.log.Error("bug: the journal refuses what was appended ahead", "error", err)
		}
	}
	return nil, nil
}

// transact commits the requests, or leaves database and memory as they were.
func (w *writer) transact(group []*request) error {
	pos, id := w.pos, w.lastID
	err := w.inTransaction(func() error {
		for _, r := range group {
			for i := range r.events {
				if err := w.append(&r.events[i]); err != nil {
					return err
				}
			}
		}
		return w.rows.write(&w.do)
	})
	w.rows.forget()
	if err == nil {
		w.count(group)
	}
	w.forget(group, err != nil)
	if err != nil {
		w.pos, w.lastID = pos, id
		return err
	}
	for _, r := range group {
		w.pruner.grew(r.bytes)
	}
	return nil
}

// forget drops the turns that ended, or, after a failure, all that were touched: they are read again when needed.
func (w *writer) forget(group []*request, failed bool) {
	for _, r := range group {
		for i := range r.events {
			id := r.events[i].TurnID
			if turn := w.turns[id]; turn != nil && (failed || turn.ended) {
				delete(w.turns, id)
			}
		}
	}
}

// inTransaction runs f between BEGIN and COMMIT; after an error everything is rolled back.
func (w *writer) inTransaction(f func() error) error {
	if w.condemned != nil {
		return w.condemned
	}
	if err := w.files.present(); err != nil {
		return err
	}
	err := run(w.do.begin)
	if err == nil {
		if err = f(); err == nil {
			err = run(w.do.commit)
			w.commits++
		}
		if err != nil {
			_ = run(w.do.rollback) // fails where SQLite has rolled back itself
		}
	}
	err = classify(w.dir, err)
	if errors.Is(err, ErrCorrupt) {
		w.damaged = true
	}
	return err
}

// append stores one event within a transaction.
func (w *writer) append(e *Event) error {
	turn, err := w.turn(e)
	if err != nil {
		return err
	}
	if err := turn.admit(e); err != nil {
		return &refusal{err}
	}
	if turn.id == 0 {
		w.lastID++
		turn.id, turn.owner = w.lastID, e.Owner
		turn.row = &turnRow{name: e.TurnID, began: e.Time.UnixNano()}
		w.rows.turns = append(w.rows.turns, turn)
	}
	turn.bytes += e.bytes()
	turn.fresh += e.bytes()
	w.pos++
	w.rows.addEvent(w.pos, turn.id, e)
	turn.pass(e)
	return w.note(turn, e)
}

// note keeps the lists of turns and calls.
func (w *writer) note(turn *turnState, e *Event) error {
	switch e.Kind {
	case api.EventQueued:
		w.rows.queueCall(turn, e)
	case api.EventStarted:
		return w.startCall(turn, e)
	case api.EventFinished, api.EventFailed:
		return w.endCall(turn, e)
	case api.EventTurnAbort:
		return w.abortTurn(turn, e)
	case api.EventTurnEnd:
		return w.endTurn(turn, e)
	}
	return nil
}

// sequence is what says whether an event of a turn may come next.
type sequence struct {
	next  int64 // the Seq that must come
	ended bool
	calls map[string]callState
}

func newSequence() sequence { return sequence{next: 1, calls: map[string]callState{}} }

// pass notes an event that may.
func (s *sequence) pass(e *Event) {
	s.next++
	s.ended = e.Kind == api.EventTurnEnd
	if aboutCall(e.Kind) {
		call := s.calls[e.CallID]
		call.over = endsCall(e.Kind)
		s.calls[e.CallID] = call
	}
}

// admit says whether the event may come next.
func (s *sequence) admit(e *Event) error {
	call, known := s.calls[e.CallID]
	switch {
	case e.Seq == 1 && s.next > 1: // a turn_start
		return fmt.Errorf("%w: %q", ErrTurnTaken, e.TurnID)
	case s.ended:
		return fmt.Errorf("bug: %s for the turn %q, which has ended", e.Kind, e.TurnID)
	case e.Seq != s.next:
		return fmt.Errorf("bug: event %d of the turn %q where %d must come", e.Seq, e.TurnID, s.next)
	case e.Kind == api.EventQueued && known:
		return fmt.Errorf("bug: the call %q is queued a second time", e.CallID)
	case e.Kind != api.EventQueued && aboutCall(e.Kind) && !known:
		return fmt.Errorf("bug: %s for the call %q, which was not queued", e.Kind, e.CallID)
	case e.Kind != api.EventQueued && aboutCall(e.Kind) && call.over:
		return fmt.Errorf("bug: %s for the call %q, which is over", e.Kind, e.CallID)
	}
	return nil
}

// turn returns what is known of the event's turn, from the database if need be. A new turn has the id 0: whether its
// name is taken, its row will tell.
func (w *writer) turn(e *Event) (*turnState, error) {
	if turn := w.turns[e.TurnID]; turn != nil {
		return turn, nil
	}
	turn := &turnState{sequence: newSequence()}
	if e.Seq == 1 {
		w.turns[e.TurnID] = turn
		return turn, nil
	}
	var ended sql.NullInt64
	err := w.do.findTurn.QueryRow(e.TurnID).Scan(&turn.id, &ended, &turn.owner)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		w.turns[e.TurnID] = turn
		return turn, nil
	case err != nil:
		return nil, err
	}
	turn.ended, turn.counted = ended.Valid, ended.Valid
	w.turns[e.TurnID] = turn
	return turn, w.load(turn)
}

// load reads the rest of a turn of the database.
func (w *writer) load(turn *turnState) error {
	if err := w.do.nextSeq.QueryRow(turn.id).Scan(&turn.next); err != nil {
		return err
	}
	if err := w.do.turnSize.QueryRow(turn.id).Scan(&turn.bytes); err != nil {
		return err
	}
	rows, err := w.do.callsOf.Query(turn.id)
	if err != nil {
		return err
	}
	return each(rows, func() error {
		var id, tool string
		var status api.Status
		err := rows.Scan(&id, &tool, &status)
		turn.calls[id] = callState{over: status != api.StatusOpen}
		return err
	})
}

const maxUnfinished = 10_000

// findUnfinished lists the turns without an end.
func (w *writer) findUnfinished(ctx context.Context) ([]Unfinished, error) {
	rows, err := w.database.conn.QueryContext(ctx, `SELECT turn_id, started, aborted,
		(SELECT coalesce(max(seq), 0) + 1 FROM events WHERE turn = turns.id), id
		FROM turns WHERE ended IS NULL ORDER BY id LIMIT ?`, maxUnfinished)
	if err != nil {
		return nil, err
	}
	var found []Unfinished
	var ids []int64
	err = each(rows, func() error {
		var u Unfinished
		var started, id int64
		err := rows.Scan(&u.TurnID, &started, &u.Aborted, &u.NextSeq, &id)
		u.Started = fromNano(started)
		found, ids = append(found, u), append(ids, id)
		return err
	})
	for i, id := range ids {
		if err == nil {
			found[i].OpenCalls, err = w.openCalls(id)
		}
	}
	return found, err
}

func (w *writer) openCalls(turn int64) ([]OpenCall, error) {
	rows, err := w.do.callsOf.Query(turn)
	if err != nil {
		return nil, err
	}
	var open []OpenCall
	err = each(rows, func() error {
		var c OpenCall
		var status api.Status
		err := rows.Scan(&c.CallID, &c.Tool, &status)
		if status == api.StatusOpen {
			open = append(open, c)
		}
		return err
	})
	return open, err
}
