package journal

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/text"
)

// Audit is a record of who did what beside turns: tokens, sessions, answers, aborts,
// configurations, and what was refused.
type Audit struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	// Who is an identity, Action what it did, What to what or from where, and Outcome
	// how that went, if not well.
	Who     string `json:"who"`
	Action  string `json:"action"`
	What    string `json:"what,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	// Hash is SHA-256 over the hash before and the record's JSON, in hexadecimal: it is
	// not part of that.
	Hash string `json:"-"`
}

// Words are the record in words, for people.
func (a *Audit) Words() string {
	words := a.Who + ": " + a.Action
	for _, more := range []string{a.What, a.Outcome} {
		if more != "" {
			words += ": " + more
		}
	}
	return words
}

// Actions of records: ActionRefused is that of a request that was not allowed, ActionLost
// stands where records are missing.
const (
	ActionRefused = "access.refused"
	ActionLost    = "audit.lost"
)

// Refused says that somebody was not let do what they wanted.
func (a *Audit) Refused() bool { return a.Action == ActionRefused }

const (
	// maxAudit bounds the records that are kept: the oldest go, and their last hash
	// stays as the anchor of the rest.
	maxAudit      = 100_000
	maxAuditRunes = 512 // of each text
	auditRowBytes = 64  // of a record, beside its JSON
)

// Audit commits a record, and gives it with its place in the chain. With an error it has none.
func (j *Journal) Audit(a Audit) (Audit, error) {
	a.Time = a.Time.UTC()
	for _, s := range []*string{&a.Who, &a.Action, &a.What, &a.Outcome} {
		*s = text.Cut(*s, maxAuditRunes)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return a, ErrClosed
	}
	err := j.writer.inTransaction(func() error { return j.writer.audit(&a) })
	if err != nil {
		j.writer.auditBytes = 0 // to be counted anew
		a.Seq, a.Hash = 0, ""
		return a, fmt.Errorf("cannot put an audit record into the journal: %w", err)
	}
	return a, nil
}

// link is the end of a chain.
type link struct {
	seq  int64
	hash []byte
}

// next is the hash of a record behind it.
func (l link) next(raw []byte) []byte {
	sum := sha256.Sum256(append(l.hash[:len(l.hash):len(l.hash)], raw...))
	return sum[:]
}

const (
	anchorQuery = "SELECT seq, hash FROM audit_anchor"
	headQuery   = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1"
)

func readLink(db queryer, queries ...string) (l link, err error) {
	err = sql.ErrNoRows
	for _, query := range queries {
		if errors.Is(err, sql.ErrNoRows) {
			err = db.QueryRowContext(context.Background(), query).Scan(&l.seq, &l.hash)
		}
	}
	return l, err
}

func (w *writer) audit(a *Audit) error {
	conn := w.database.conn
	before, err := readLink(conn, headQuery, anchorQuery)
	if err != nil {
		return err
	}
	a.Seq = before.seq + 1
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	hash := before.next(raw)
	a.Hash = hex.EncodeToString(hash)
	ctx := context.Background()
	if _, err := conn.ExecContext(ctx, "INSERT INTO audit (seq, json, hash) VALUES (?, ?, ?)", a.Seq, raw, hash); err != nil {
		return err
	}
	last := a.Seq - maxAudit
	if last <= 0 {
		if w.auditBytes > 0 {
			w.auditBytes += int64(len(raw) + auditRowBytes)
		}
		return nil
	}
	_, err = conn.ExecContext(ctx, "UPDATE audit_anchor SET (seq, hash) = (SELECT seq, hash FROM audit WHERE seq = ?) WHERE EXISTS (SELECT 1 FROM audit WHERE seq = ?)", last, last)
	if err == nil {
		_, err = conn.ExecContext(ctx, "DELETE FROM audit WHERE seq <= ?", last)
	}
	return err
}

// auditSize is about what the records hold: all of them are counted once.
func (w *writer) auditSize() (bytes int64, err error) {
	if w.auditBytes == 0 {
		err = w.database.conn.QueryRowContext(context.Background(), "SELECT coalesce(sum(length(json) + ?), 0) FROM audit", auditRowBytes).Scan(&w.auditBytes)
	}
	return w.auditBytes / 4 * 5, err // pages are not full
}

// ErrBroken is why a chain of audit records is not what was written.
var ErrBroken = errors.New("the chain of audit records is broken")

// Audits gives the audit records behind a seq in order, and checks the chain from its
// beginning on the way: an error that is ErrBroken says where it is not what was
// written. What was cut off at the end only shows beside a record that somebody has
// noted elsewhere.
func (r *Reader) Audits(after int64, yield func(Audit) bool) error {
	before, err := readLink(r.db, anchorQuery)
	if err != nil {
		return fmt.Errorf("cannot read the audit records: %w", classify(r.dir, err))
	}
	rows, err := r.db.Query("SELECT seq, json, hash FROM audit ORDER BY seq")
	if err != nil {
		return fmt.Errorf("cannot read the audit records: %w", classify(r.dir, err))
	}
	errStop := errors.New("stop")
	err = each(rows, func() error {
		var at link
		var raw []byte
		if err := rows.Scan(&at.seq, &raw, &at.hash); err != nil {
			return err
		}
		a, err := before.check(at, raw)
		if err != nil {
			return err
		}
		before = at
		if at.seq > after && !yield(a) {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// AuditsOf gives the audit records whose action begins so, in order. It does not check
// the chain.
func (r *Reader) AuditsOf(actions string, yield func(Audit)) error {
	rows, err := r.db.Query("SELECT json FROM audit WHERE instr(json, ?) > 0 ORDER BY seq", `"action":"`+actions)
	if err != nil {
		return fmt.Errorf("cannot read the audit records: %w", classify(r.dir, err))
	}
	return each(rows, func() error {
		var raw []byte
		var a Audit
		if err := rows.Scan(&raw); err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &a); err == nil && strings.HasPrefix(a.Action, actions) {
			yield(a)
		}
		return nil
	})
}

// check says whether a record is the one that was written behind l.
func (l link) check(at link, raw []byte) (a Audit, err error) {
	switch {
	case at.seq != l.seq+1:
		return a, fmt.Errorf("%w: record %d is missing", ErrBroken, l.seq+1)
	case string(l.next(raw)) != string(at.hash):
		return a, fmt.Errorf("%w: record %d is not what was written", ErrBroken, at.seq)
	}
	if err := json.Unmarshal(raw, &a); err != nil || a.Seq != at.seq {
		return a, fmt.Errorf("%w: record %d cannot be read", ErrBroken, at.seq)
	}
	a.Hash = hex.EncodeToString(at.hash)
	return a, nil
}
