package journal

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// statements of the writer, prepared once.
type statements struct {
	begin, commit, rollback             *sql.Stmt
	abortTurn, endTurn                  *sql.Stmt
	startCall, endCall, result          *sql.Stmt
	findTurn, nextSeq, lastSeq, callsOf *sql.Stmt
	pruning, markTurn, dropTurn         *sql.Stmt
	victimStatements
	ownerStatements
	rowStatements
	eventSizes, dropEvents, resultSizes    *sql.Stmt
	markClosed                             *sql.Stmt
	lastPos, lastID, markPos               *sql.Stmt
	dropResults, dropCalls, unmarkTurn     *sql.Stmt
	pageSize, pageCount, freePages, vacuum *sql.Stmt

	all []*sql.Stmt
}

// victimStatements find the turn that goes next.
type victimStatements struct{ oldest, oldestAhead *sql.Stmt }

// ownerStatements are about what owners hold.
type ownerStatements struct{ oldestOf, turnSize, turnBytes *sql.Stmt }

// rowStatements add what is new as a whole.
type rowStatements struct{ event, events, turn, call, resultOf *sql.Stmt }

func (s *statements) prepare(ctx context.Context, conn *sql.Conn) error {
	for _, p := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&s.begin, "BEGIN IMMEDIATE"},
		{&s.commit, "COMMIT"},
		{&s.rollback, "ROLLBACK"},
		{&s.event, insertEvents(1)},
		{&s.events, insertEvents(eventsAtOnce)},
		{&s.turn, "INSERT INTO turns (id, turn_id, started, owner, ended, aborted, reason, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
		{&s.call, "INSERT INTO calls (turn, call_id, tool, queued, started, status, reason, ended, elapsed_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"},
		{&s.resultOf, "INSERT INTO results (json, sum, call) VALUES (?, ?, ?)"},
		{&s.abortTurn, "UPDATE turns SET aborted = 1, reason = ? WHERE id = ?"},
		{&s.endTurn, "UPDATE turns SET ended = ?, bytes = ? WHERE id = ?"},
		{&s.startCall, "UPDATE calls SET started = ? WHERE turn = ? AND call_id = ?"},
		{&s.endCall, "UPDATE calls SET status = ?, reason = ?, ended = ?, elapsed_ms = ? WHERE turn = ? AND call_id = ?"},
		{&s.result, "INSERT INTO results (json, sum, call) SELECT ?, ?, id FROM calls WHERE turn = ? AND call_id = ?"},
		{&s.findTurn, "SELECT id, ended, owner FROM turns WHERE turn_id = ?"},
		{&s.nextSeq, "SELECT coalesce(max(seq), 0) + 1 FROM events WHERE turn = ?"},
		{&s.lastSeq, "SELECT coalesce(max(e.seq), 0) FROM turns t JOIN events e ON e.turn = t.id WHERE t.turn_id = ?"},
		{&s.callsOf, "SELECT call_id, tool, status FROM calls WHERE turn = ? ORDER BY id"},
		{&s.pruning, "SELECT turn FROM pruning LIMIT 1"},
		{&s.oldest, "SELECT id, turn_id, ended FROM turns WHERE ended IS NOT NULL ORDER BY ended, id LIMIT 1"},
		{&s.oldestAhead, "SELECT id FROM turns WHERE ended > ? ORDER BY ended, id LIMIT 1"},
		{&s.oldestOf, "SELECT id FROM turns WHERE owner = ?1 AND ended IS NOT NULL AND id <> (SELECT id FROM turns WHERE owner = ?1 ORDER BY started DESC, id DESC LIMIT 1) ORDER BY started, id LIMIT 1"},
		{&s.turnBytes, "SELECT owner, bytes FROM turns WHERE id = ?"},
		{&s.turnSize, "SELECT (SELECT coalesce(sum(length(json) + 128), 0) FROM events WHERE turn = ?1) + (SELECT coalesce(sum(length(r.json)), 0) FROM calls c JOIN results r ON r.call = c.id WHERE c.turn = ?1)"},
		{&s.markTurn, "INSERT INTO pruning (turn) VALUES (?)"},
		{&s.dropTurn, "DELETE FROM turns WHERE id = ?"},
		{&s.eventSizes, "SELECT seq, length(json) FROM events WHERE turn = ? ORDER BY seq LIMIT ?"},
		{&s.lastPos, "SELECT max(mark.pos, (SELECT coalesce(max(pos), 0) FROM events)) FROM mark"},
		{&s.lastID, "SELECT max(mark.turn, (SELECT coalesce(max(id), 0) FROM turns), (SELECT coalesce(max(turn), 0) FROM pruning)) FROM mark"},
		{&s.markPos, "UPDATE mark SET pos = ?, turn = max(turn, (SELECT coalesce(max(turn), 0) FROM pruning))"},
		{&s.markClosed, "UPDATE mark SET closed = ?"},
		{&s.dropEvents, "DELETE FROM events WHERE turn = ? AND seq <= ?"},
		{&s.resultSizes, "SELECT c.id, coalesce(length(r.json), 0) FROM calls c LEFT JOIN results r ON r.call = c.id WHERE c.turn = ? ORDER BY c.id LIMIT ?"},
		{&s.dropResults, "DELETE FROM results WHERE call IN (SELECT id FROM calls WHERE turn = ? AND id <= ?)"},
		{&s.dropCalls, "DELETE FROM calls WHERE turn = ? AND id <= ?"},
		{&s.unmarkTurn, "DELETE FROM pruning WHERE turn = ?"},
		{&s.pageSize, "PRAGMA page_size"},
		{&s.pageCount, "PRAGMA page_count"},
		{&s.freePages, "PRAGMA freelist_count"},
		{&s.vacuum, "PRAGMA incremental_vacuum(256)"},
	} {
		stmt, err := conn.PrepareContext(ctx, p.query)
		if err != nil {
			return errors.Join(err, s.close())
		}
		*p.into, s.all = stmt, append(s.all, stmt)
	}
	return nil
}

func (s *statements) close() error {
	var errs []error
	for _, stmt := range s.all {
		errs = append(errs, stmt.Close())
	}
	s.all = nil
	return errors.Join(errs...)
}

func run(stmt *sql.Stmt, args ...any) error {
	_, err := stmt.Exec(args...)
	return err
}

func insert(stmt *sql.Stmt, args ...any) (int64, error) {
	result, err := stmt.Exec(args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// each calls f on every row and closes them.
func each(rows *sql.Rows, f func() error) error {
	for rows.Next() {
		if err := f(); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

func fromNano(n int64) time.Time { return time.Unix(0, n).UTC() }

// fromNullNano gives the zero time for NULL.
func fromNullNano(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromNano(n.Int64)
}
