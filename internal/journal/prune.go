package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Retention says what is kept. Whole turns are pruned, those that ended first first; one without its turn_end never is.
type Retention struct {
	// MaxAge is how long a turn is kept after its end; default 30 days, negative: for ever.
	MaxAge time.Duration
	// MaxBytes bounds what the database holds, within about a megabyte, without its log, of about 16 MiB, and
	// up to four times that while much is written beside readers that end; default 512 MiB, negative: none.
	MaxBytes int64
}

const (
	defaultMaxAge   = 30 * 24 * time.Hour
	defaultMaxBytes = 512 << 20
)

// Defaulted is r with its zero fields filled in.
func (r Retention) Defaulted() Retention {
	r.MaxAge = cmp.Or(r.MaxAge, defaultMaxAge)
	r.MaxBytes = cmp.Or(r.MaxBytes, defaultMaxBytes)
	return r
}

// checkEveryBytes is how much is appended between two looks at the size.
func (r Retention) checkEveryBytes() int64 { return max(1, min(1<<20, r.MaxBytes/8)) }

// Bounds of one step of pruning, between which appends have their turn.
const (
	maxStepRows  = 64
	maxStepBytes = 1 << 20
)

// Prune does now what Retention asks for. It is done without asking when the journal opens, grows, and once a minute:
// turns also counts what went in that way, since the Prune before or since the journal was opened. It shares the
// database with appends step by step; ctx ends only the waiting.
func (j *Journal) Prune(ctx context.Context) (turns int, err error) {
	waiter := make(chan pruned, 1)
	select {
	case j.prunes <- waiter:
	case <-j.done:
		return 0, fmt.Errorf("cannot prune the journal: %w", ErrClosed)
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	select {
	case p := <-waiter: // run answers whatever it took
		if p.err != nil {
			return p.turns, fmt.Errorf("cannot prune the journal: %w", p.err)
		}
		return p.turns, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// pruned is how a pass of pruning went.
type pruned struct {
	turns int
	err   error
}

// pruner is the state of the pass that is under way, if it is active. Every step looks afresh for what to do: so a pass
// that was interrupted needs no repair.
type pruner struct {
	limits  Retention
	now     func() time.Time
	active  bool
	waiters []chan pruned
	turns   int   // pruned in this pass
	untold  int   // turns pruned in the passes before, that nobody waited for
	steps   int   // that changed something in this pass
	grown   int64 // bytes since the last pass
	owed    bool  // a reader has kept the last pass from writing the whole log to the file
}

func (p *pruner) begin(waiter chan pruned) {
	p.active = true
	if waiter != nil {
		p.waiters = append(p.waiters, waiter)
	}
}

func (p *pruner) end(err error) {
	next := pruner{limits: p.limits, now: p.now, owed: p.owed}
	if len(p.waiters) == 0 {
		next.untold = p.untold + p.turns
	}
	for _, waiter := range p.waiters {
		waiter <- pruned{turns: p.untold + p.turns, err: err}
	}
	*p = next
}

func (p *pruner) grew(bytes int64) {
	p.grown += bytes
	if p.grown >= p.limits.checkEveryBytes() {
		p.begin(nil)
	}
}

// prune does one step of the pass, and says whether that was the last, behind which the log is written to the file
// and endPass must follow.
func (w *writer) prune() (over bool, err error) {
	if w.condemned != nil {
		return true, w.condemned
	}
	more, err := w.pruneStep()
	if more && err == nil {
		w.pruner.steps++
		return false, nil
	}
	return true, err
}

// keepUp has who appends do a step of the pass that is under way where more comes than
// is pruned: on a busy machine the pass may not have its turn for a long time.
func (w *writer) keepUp() {
	most := 2 * w.pruner.limits.checkEveryBytes()
	if w.pruner.limits.MaxBytes < 0 || w.pruner.grown < most {
		return
	}
	if used, _, err := w.size(); err == nil && used > w.pruner.limits.MaxBytes+most {
		_, _ = w.prune() // the pass finds out what that was
	}
}

// endPass ends the pass.
func (w *writer) endPass(err error) {
	switch {
	case w.condemned != nil: // which was logged
	case err != nil:
		w.log.Warn("cannot prune the journal", "error", err)
	case w.pruner.turns > 0:
		w.log.Debug("pruned the journal", "turns", w.pruner.turns)
	}
	w.pruner.end(err)
}

// pruneStep says whether there may be more to do.
func (w *writer) pruneStep() (more bool, err error) {
	var turn int64
	err = w.do.pruning.QueryRow().Scan(&turn)
	if err == nil {
		return true, w.inTransaction(func() error { return w.sweep(turn) })
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return false, classify(w.dir, err)
	}
	if turn, err = w.victim(); err != nil {
		return false, classify(w.dir, err)
	}
	if turn == 0 {
		return w.shrink()
	}
	var owner string
	var bytes int64
	err = w.inTransaction(func() error {
		return errors.Join(w.do.turnBytes.QueryRow(turn).Scan(&owner, &bytes), run(w.do.markTurn, turn), run(w.do.dropTurn, turn))
	})
	if err == nil {
		w.held.add(owner, 0, -bytes)
		w.pruner.turns++
	}
	return true, err
}

// victim is the turn to be pruned next, or 0.
func (w *writer) victim() (int64, error) {
	var id, ended int64
	var name string
	switch err := w.do.oldest.QueryRow().Scan(&id, &name, &ended); {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	}
	age := w.pruner.now().Sub(fromNano(ended))
	if limit := w.pruner.limits.MaxAge; limit >= 0 && age > limit {
		return id, nil
	}
	size, _, err := w.size()
	if limit := w.pruner.limits.MaxBytes; err == nil && limit >= 0 && size > limit {
		return id, nil
	}
	if err != nil {
		return 0, err
	}
	return w.ownVictim()
}

// size is what the database holds, in bytes, and how many pages of the file hold nothing.
func (w *writer) size() (usedBytes, free int64, err error) {
	var pageBytes, pages int64
	for _, q := range []struct {
		stmt *sql.Stmt
		into *int64
	}{{w.do.pageSize, &pageBytes}, {w.do.pageCount, &pages}, {w.do.freePages, &free}} {
		if err := q.stmt.QueryRow().Scan(q.into); err != nil {
			return 0, 0, err
		}
	}
	return (pages - free) * pageBytes, free, nil
}

// sweep deletes a part of what a pruned turn has left: its events, then its calls and results, then its mark.
func (w *writer) sweep(turn int64) error {
	last, err := w.upTo(w.do.eventSizes, turn)
	if err != nil {
		return err
	}
	if last > 0 {
		return errors.Join(run(w.do.markPos, w.pos), run(w.do.dropEvents, turn, last))
	}
	if last, err = w.upTo(w.do.resultSizes, turn); err != nil {
		return err
	}
	if last > 0 {
		return errors.Join(run(w.do.dropResults, turn, last), run(w.do.dropCalls, turn, last))
	}
	return run(w.do.unmarkTurn, turn)
}

// upTo is the key of the last row within one step's bounds, 0 if there is no row. A row alone may be over them.
func (w *writer) upTo(sizes *sql.Stmt, turn int64) (last int64, err error) {
	rows, err := sizes.Query(turn, maxStepRows)
	if err != nil {
		return 0, err
	}
	var sum int64
	err = each(rows, func() error {
		var key, bytes int64
		err := rows.Scan(&key, &bytes)
		if sum += bytes; sum <= maxStepBytes || last == 0 {
			last = key
		}
		return err
	})
	return last, err
}

// shrink gives up to a megabyte (see statements.vacuum) of empty pages back.
func (w *writer) shrink() (more bool, err error) {
	_, before, err := w.size()
	if err != nil || before == 0 {
		return false, classify(w.dir, err)
	}
	if err := run(w.do.vacuum); err != nil {
		return false, classify(w.dir, err)
	}
	_, after, err := w.size()
	return after > 0 && after < before, classify(w.dir, err)
}
