package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// unchecked is what Open had no time to check of a database. Nil is nothing.
type unchecked struct {
	left *comparison // by sums; nil is the structure
}

// checkDatabase checks what there is time for. Sums reveal any damage, if they were made of this very database;
// otherwise its structure is checked. Before a migration writes, everything with a sum is compared.
func (d *database) check(ctx context.Context, dir string, id identity, unclean, migrates bool) (*unchecked, error) {
	if s := readSums(dir); s != nil && !unclean {
		applies, err := d.isLeftAs(ctx, id, s)
		if err != nil {
			return nil, err
		}
		if applies {
			return checkSums(dir, s, migrates)
		}
	}
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	err := quickCheck(bounded, d.conn)
	if bounded.Err() != nil && !errors.Is(err, ErrCorrupt) {
		return &unchecked{}, nil
	}
	return nil, classify(dir, err)
}

// isLeftAs says whether the database is the one that s are the sums of.
func (d *database) isLeftAs(ctx context.Context, id identity, s *sums) (bool, error) {
	if id.version < 2 {
		return false, nil
	}
	var closed int64
	err := d.conn.QueryRowContext(ctx, "SELECT closed FROM mark").Scan(&closed)
	if errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("%w: it has lost its mark", ErrCorrupt)
	}
	return closed == s.Closed, err
}

func checkSums(dir string, s *sums, all bool) (*unchecked, error) {
	c, err := s.compare(dir)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(checkTime)
	all = all || len(s.Files) > 1 // the log may be written to the file while it is read
	done, err := c.goOn(func() bool { return !all && time.Now().After(until) })
	switch {
	case err != nil:
		return nil, err
	case !done:
		return &unchecked{left: c}, nil
	case !c.whole:
		return &unchecked{}, nil
	}
	return nil, nil
}

// checkOn checks the rest while the journal is used, until ctx ends. As long as its reader reads, nothing is written to
// the database's file but to its log.
func (j *Journal) checkOn(ctx context.Context, rest *unchecked, guard *Reader, snapshot *sql.Tx) {
	defer func() { _ = errors.Join(snapshot.Rollback(), guard.Close()) }() // it only read
	var err error
	if rest.left != nil {
		var done bool
		done, err = rest.left.goOn(func() bool { return !rested(ctx) })
		if err == nil && (!done || rest.left.whole) {
			return
		}
	}
	if err == nil {
		err = classify(j.dir, quickCheck(ctx, snapshot))
	}
	if errors.Is(err, ErrCorrupt) {
		j.condemn(err)
	}
}

// breather is how long the check behind Open rests after each megabyte: calls come first.
const breather = 2 * time.Millisecond

// rested is false when ctx has ended.
func rested(ctx context.Context) bool {
	select {
	case <-time.After(breather):
		return true
	case <-ctx.Done():
		return false
	}
}

// condemn ends all writing to a damaged database. No checkpoint changes it while the verdict
// says which it is.
func (j *Journal) condemn(why error) {
	j.logMu.Lock()
	defer j.logMu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || j.writer.condemned != nil {
		return
	}
	j.writer.damaged = true
	j.ahead.stop()
	j.writer.condemned = fmt.Errorf("%w; nothing is written to it any more: restart, and it is moved aside for a new one", why)
	err := condemn(j.dir, why)
	j.writer.log.Error("the journal's database is damaged: nothing is written to it any more; restart, and it is moved aside for a new one", "damage", why, "error", err)
}

// guard begins a reading that keeps the file as it is.
func guard(ctx context.Context, dir string, version int) (*Reader, *sql.Tx, error) {
	r, err := openReader(dir, version)
	if err != nil {
		return nil, nil, err
	}
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err == nil {
		_, err = tx.ExecContext(ctx, "SELECT count(*) FROM sqlite_schema")
	}
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return r, tx, nil
}

// checkUnfinished reads the turns that Recover is to close, which must be as they were appended.
func (j *Journal) checkUnfinished(version int) error {
	if len(j.unfinished) == 0 {
		return nil
	}
	r, err := openReader(j.dir, version)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, u := range j.unfinished {
		if err := r.Events(u.TurnID, 0, func(Event) bool { return true }); errors.Is(err, ErrCorrupt) {
			return err
		}
	}
	return nil
}

// beginCheck has the rest checked behind Open.
func (j *Journal) beginCheck(rest *unchecked, version int) error {
	ctx, cancel := context.WithCancel(context.Background())
	j.endCheck = cancel
	if rest == nil {
		return nil
	}
	r, snapshot, err := guard(ctx, j.dir, version)
	if err != nil {
		cancel()
		return err
	}
	j.checking.Go(func() { j.checkOn(ctx, rest, r, snapshot) })
	return nil
}
