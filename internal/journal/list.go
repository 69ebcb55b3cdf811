package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
)

// MaxLimit is the most that one list holds.
const MaxLimit = 10_000

const defaultLimit = 100

// Statuses are what a call can have for its status.
func Statuses() []string {
	all := []string{string(api.StatusOpen)}
	for _, s := range api.Statuses() {
		all = append(all, string(s))
	}
	return all
}

// conditions are the parts of a WHERE and their arguments.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(part string, args ...any) {
	c.parts, c.args = append(c.parts, part), append(c.args, args...)
}

func (c *conditions) where() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.parts, " AND ")
}

// common adds what turns and calls are selected by alike; column is the one of the time.
func common(f api.Filter, column string) *conditions {
	c := &conditions{}
	if f.TurnID != "" {
		c.add("t.turn_id = ?", f.TurnID)
	}
	if f.Owner != "" {
		c.add("t.owner = ?", f.Owner)
	}
	if !f.Since.IsZero() {
		c.add(column+" >= ?", nanoseconds(f.Since))
	}
	if !f.Until.IsZero() {
		c.add(column+" < ?", nanoseconds(f.Until))
	}
	return c
}

// ofCall adds what a call c is selected by. Where that is among those of a turn, the
// sign keeps SQLite from looking among all calls.
func ofCall(f api.Filter, c *conditions, ofTurn bool) {
	sign := ""
	if ofTurn {
		sign = "+"
	}
	if f.Tool != "" {
		c.add(sign+"c.tool = ?", f.Tool)
	}
	if f.Status != "" {
		c.add(sign+"c.status = ?", f.Status)
	}
	if hasFailed(f.Status) {
		c.add(failed)
	}
}

// failed is what the index calls_failed has for its condition.
const failed = "c.status NOT IN ('ok', 'open')"

func hasFailed(status string) bool {
	return status != "" && status != string(api.StatusOK) && status != string(api.StatusOpen)
}

// few is how many rows are looked up and sorted rather than looked for, the newest
// first, among all others.
const few = 5000

// isFew says whether a query has no more rows than that.
func isFew(db queryer, rows string, args ...any) (bool, error) {
	var n int
	err := db.QueryRowContext(context.Background(), fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d)", rows, few+1), args...).Scan(&n)
	return n <= few, err
}

// callsByTurn says whether there are so few turns that calls are found by them, and not
// by themselves: SQLite does not know how many rows have a value.
func (r *Reader) callsByTurn(f api.Filter) (bool, error) {
	switch {
	case f.TurnID != "", f.Status == string(api.StatusOpen):
		return true, nil
	case f.Owner != "":
		return isFew(r.db, "turns WHERE owner = ?", f.Owner)
	}
	return false, nil
}

// callsBy is the index that leaves the fewest calls, by time.
func callsBy(f api.Filter) string {
	switch {
	case hasFailed(f.Status):
		return "calls c INDEXED BY calls_failed"
	case f.Tool != "":
		return "calls c INDEXED BY calls_by_tool"
	}
	return "calls c INDEXED BY calls_by_time"
}

// withCalls adds that a turn has a call as f wants it.
func withCalls(db queryer, f api.Filter, where *conditions) error {
	open := f.Status == string(api.StatusOpen)
	if open {
		where.add("t.ended IS NULL")
	}
	if !open && (f.Tool != "" || hasFailed(f.Status)) {
		calls := &conditions{}
		ofCall(f, calls, false)
		rows := callsBy(f) + calls.where()
		lookUp, err := isFew(db, rows, calls.args...)
		if err != nil {
			return err
		}
		if lookUp {
			where.add("t.id IN (SELECT c.turn FROM "+rows+")", calls.args...)
			return nil
		}
	}
	calls := &conditions{parts: []string{"c.turn = t.id"}}
	ofCall(f, calls, true)
	where.add("EXISTS (SELECT 1 FROM calls c"+calls.where()+")", calls.args...)
	return nil
}

// Count is how many a filter lets a list hold.
func Count(f api.Filter) int {
	if f.Limit <= 0 {
		return defaultLimit
	}
	return min(f.Limit, MaxLimit)
}

// Calls lists calls, the last queued first.
func (r *Reader) Calls(f api.Filter) ([]api.CallSummary, error) {
	defer r.begin()()
	byTurn, err := r.callsByTurn(f)
	if err != nil {
		return nil, fmt.Errorf("cannot list calls: %w", classify(r.dir, err))
	}
	column, from := "c.queued", callsBy(f)+" CROSS JOIN turns t ON t.id = c.turn"
	if byTurn {
		column, from = "+c.queued", "turns t CROSS JOIN calls c ON c.turn = t.id"
	}
	where := common(f, column)
	ofCall(f, where, byTurn)
	if f.Status == string(api.StatusOpen) { // its turn is, too
		where.add("t.ended IS NULL")
	}
	rows, err := r.db.Query(`SELECT t.turn_id, c.call_id, c.tool, c.status, c.reason, c.queued, c.started, c.ended,
		c.elapsed_ms, EXISTS (SELECT 1 FROM results WHERE call = c.id)
		FROM `+from+where.where()+` ORDER BY c.queued DESC, c.id DESC LIMIT ?`, append(where.args, Count(f))...)
	if err != nil {
		return nil, fmt.Errorf("cannot list calls: %w", classify(r.dir, err))
	}
	var calls []api.CallSummary
	err = each(rows, func() error {
		var c api.CallSummary
		var queued int64
		var started, ended sql.NullInt64
		err := rows.Scan(&c.TurnID, &c.CallID, &c.Tool, &c.Status, &c.Reason, &queued, &started, &ended, &c.ElapsedMs, &c.HasResult)
		c.Queued, c.Started, c.Ended = fromNano(queued), fromNullNano(started), fromNullNano(ended)
		calls = append(calls, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list calls: %w", classify(r.dir, err))
	}
	return calls, nil
}

// Turns lists turns, the last started first.
func (r *Reader) Turns(f api.Filter) ([]api.TurnSummary, error) {
	turns, err := r.turns(f)
	if err == nil && slices.ContainsFunc(turns, isOpen) && ownerless(r.dir) {
		turns, err = r.left(f)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list turns: %w", classify(r.dir, err))
	}
	return turns, nil
}

// left lists the turns again, of an owner that has ended by now. They are those of another
// if there is one behind that.
func (r *Reader) left(f api.Filter) ([]api.TurnSummary, error) {
	turns, err := r.turns(f)
	if ownerless(r.dir) {
		for i, t := range turns {
			turns[i].HostDied = isOpen(t)
		}
	}
	return turns, err
}

func isOpen(t api.TurnSummary) bool { return t.State == api.TurnOpen }

// turns reads both queries from one snapshot.
func (r *Reader) turns(f api.Filter) ([]api.TurnSummary, error) {
	defer r.begin()()
	tx, err := r.db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // it only read
	where := common(f, "t.started")
	if f.Tool != "" || f.Status != "" {
		if err := withCalls(tx, f, where); err != nil {
			return nil, err
		}
	}
	rows, err := tx.Query(`SELECT t.id, t.turn_id, t.owner, t.reason, t.started, t.ended, t.aborted,
		(SELECT coalesce(max(seq), 0) FROM events WHERE turn = t.id),
		(SELECT json FROM events WHERE turn = t.id ORDER BY seq LIMIT 1)
		FROM turns t WHERE t.id IN (SELECT t.id FROM turns t`+where.where()+` ORDER BY t.started DESC, t.id DESC LIMIT ?)
		ORDER BY t.started DESC, t.id DESC`, append(where.args, Count(f))...)
	if err != nil {
		return nil, err
	}
	var turns []api.TurnSummary
	var ids []int64
	err = each(rows, func() error {
		turn, id, err := scanTurn(rows)
		turns, ids = append(turns, turn), append(ids, id)
		return err
	})
	for i, id := range ids {
		if err == nil {
			err = countCalls(&turns[i], tx, id)
		}
	}
	return turns, err
}

func scanTurn(rows *sql.Rows) (t api.TurnSummary, id int64, err error) {
	var started int64
	var ended sql.NullInt64
	var aborted bool
	var first []byte
	err = rows.Scan(&id, &t.TurnID, &t.Owner, &t.Reason, &started, &ended, &aborted, &t.Events, &first)
	t.AgentID = agentOf(first)
	t.Started, t.Ended = fromNano(started), fromNullNano(ended)
	switch {
	case !ended.Valid:
		t.State = api.TurnOpen
	case aborted:
		t.State = api.TurnAborted
	default:
		t.State = api.TurnEnded
	}
	return t, id, err
}

// agentOf reads a turn's first event, which is its turn_start.
func agentOf(first []byte) string {
	var e struct {
		Kind    api.EventKind `json:"kind"`
		AgentID string        `json:"agentId"`
	}
	if json.Unmarshal(first, &e) != nil || e.Kind != api.EventTurnStart {
		return ""
	}
	return e.AgentID
}

// countCalls fills in the calls.
func countCalls(t *api.TurnSummary, db queryer, id int64) error {
	t.Outcomes = map[string]int{}
	rows, err := db.QueryContext(context.Background(), "SELECT status, count(*) FROM calls WHERE turn = ? GROUP BY status", id)
	if err != nil {
		return err
	}
	return each(rows, func() error {
		var status string
		var n int
		err := rows.Scan(&status, &n)
		t.Outcomes[status] = n
		t.Calls += n
		return err
	})
}

// nanoseconds is a time as events have it; one that no event can have is before or
// behind all of them.
func nanoseconds(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// Owner is who began a turn; empty where that is not on record. Of a turn that is not on record the error is ErrNotFound.
func (r *Reader) Owner(turnID string) (owner string, err error) {
	defer r.begin()()
	err = r.db.QueryRow("SELECT owner FROM turns WHERE turn_id = ?", turnID).Scan(&owner)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", fmt.Errorf("turn %q: %w", turnID, ErrNotFound)
	case err != nil:
		return "", fmt.Errorf("cannot find who began turn %q: %w", turnID, classify(r.dir, err))
	}
	return owner, nil
}
