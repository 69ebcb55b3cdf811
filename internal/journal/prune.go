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
	// MaxBytes bounds what the database holds, within about a megabyte, without its log, of about 32 MiB, and
	// up to four times that while much is written beside readers that end; default 512 MiB, negative: none.
	// Turns may have half of it in any case, where audit records hold more than the rest.
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
	j.settle()
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
	if over, err := w.oversized(most); err == nil && over {
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

// pruneStep says whether there may be more to do. A step is as many small turns as fit into one transaction: what
// each of them has shares its pages with its neighbours.
func (w *writer) pruneStep() (more bool, err error) {
	next, err := w.nextPruned()
	if err != nil {
		return false, classify(w.dir, err)
	}
	if next == (prunable{}) {
		return w.shrink()
	}
	step := stepOf{rows: maxStepRows, bytes: maxStepBytes}
	err = w.inTransaction(func() (err error) {
		for next != (prunable{}) && step.rows > 0 && step.bytes > 0 && err == nil {
			if err = w.pruneOne(next, &step); err == nil {
				next, err = w.nextPruned()
			}
		}
		return err
	})
	if err == nil {
		w.pruner.turns += len(step.dropped)
		return true, nil
	}
	for _, d := range step.dropped { // they are still there
		w.held.add(d.owner, 0, d.bytes)
	}
	return true, err
}

// stepOf is what a step may still do, and the turns that it has dropped.
type stepOf struct {
	rows, bytes int64
	dropped     []droppedTurn
}

type droppedTurn struct {
	owner string
	bytes int64
}

// prunable is a turn that is to be pruned, or what is left of it.
type prunable struct {
	turn int64
	left bool
}

// nextPruned is what to prune next; zero for nothing.
func (w *writer) nextPruned() (p prunable, err error) {
	switch err := w.do.pruning.QueryRow().Scan(&p.turn); {
	case err == nil:
		return prunable{p.turn, true}, nil
	case !errors.Is(err, sql.ErrNoRows):
		return p, err
	}
	p.turn, err = w.victim()
	return p, err
}

// pruneOne drops a turn, or a part of what it has left.
func (w *writer) pruneOne(p prunable, step *stepOf) error {
	if p.left {
		return w.sweep(p.turn, step)
	}
	step.rows--
	var d droppedTurn
	err := errors.Join(w.do.turnBytes.QueryRow(p.turn).Scan(&d.owner, &d.bytes), run(w.do.markTurn, p.turn), run(w.do.dropTurn, p.turn))
	if err == nil {
		w.held.add(d.owner, 0, -d.bytes) // ownVictim goes by it, also within the step
		step.dropped = append(step.dropped, d)
	}
	return err
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
	switch over, err := w.oversized(0); {
	case err != nil:
		return 0, err
	case over:
		return w.firstBegun(id)
	}
	return w.ownVictim()
}

// firstBegun is the turn id, which ended first by its time, or an older one that ended while the clock was ahead. Ids
// only grow.
func (w *writer) firstBegun(id int64) (int64, error) {
	older := id
	err := w.do.oldestAhead.QueryRow(w.pruner.now().UnixNano()).Scan(&older)
	if errors.Is(err, sql.ErrNoRows) {
		return id, nil
	}
	return min(id, older), err
}

// oversized says whether turns go for the size, where so much beyond the limit is let pass.
func (w *writer) oversized(beyond int64) (bool, error) {
	limit := w.pruner.limits.MaxBytes
	if limit < 0 {
		return false, nil
	}
	size, _, err := w.size()
	if err != nil || size <= limit+beyond {
		return false, err
	}
	audit, err := w.auditSize()
	return size > max(limit, audit+limit/2)+beyond, err
}

// size is how many bytes of the file hold something, and how many do not.
func (w *writer) size() (used, free int64, err error) {
	var pageBytes, pages int64
	for _, q := range []struct {
		stmt *sql.Stmt
		into *int64
	}{{w.do.pageSize, &pageBytes}, {w.do.pageCount, &pages}, {w.do.freePages, &free}} {
		if err := q.stmt.QueryRow().Scan(q.into); err != nil {
			return 0, 0, err
		}
	}
	return (pages - free) * pageBytes, free * pageBytes, nil
}

// sweep deletes a part of what a pruned turn has left: its events, then its calls and results, then its mark.
func (w *writer) sweep(turn int64, step *stepOf) error {
	last, err := w.upTo(w.do.eventSizes, turn, step)
	if err != nil {
		return err
	}
	if last > 0 {
		return errors.Join(run(w.do.markPos, w.pos), run(w.do.dropEvents, turn, last))
	}
	if last, err = w.upTo(w.do.resultSizes, turn, step); err != nil {
		return err
	}
	if last > 0 {
		return errors.Join(run(w.do.dropResults, turn, last), run(w.do.dropCalls, turn, last))
	}
	step.rows--
	return run(w.do.unmarkTurn, turn)
}

// upTo is the key of the last row within the step's bounds, 0 if there is no row. A row alone may be over them.
func (w *writer) upTo(sizes *sql.Stmt, turn int64, step *stepOf) (last int64, err error) {
	rows, err := sizes.Query(turn, step.rows)
	if err != nil {
		return 0, err
	}
	var sum int64
	err = each(rows, func() error {
		var key, bytes int64
		err := rows.Scan(&key, &bytes)
		if sum += bytes; sum <= step.bytes || last == 0 {
			last = key
			step.rows--
		}
		return err
	})
	step.bytes -= sum
	return last, err
}

// shrink gives up to a megabyte (see statements.vacuum) of empty pages back. Where nobody waits for that, it leaves
// those that the next appends need anyway: moving pages costs as much as writing them.
func (w *writer) shrink() (more bool, err error) {
	spare := 2 * w.pruner.limits.checkEveryBytes()
	if len(w.pruner.waiters) > 0 {
		spare = 0
	}
	_, before, err := w.size()
	if err != nil || before <= spare {
		return false, classify(w.dir, err)
	}
	if err := run(w.do.vacuum); err != nil {
		return false, classify(w.dir, err)
	}
	_, after, err := w.size()
	return after > spare && after < before, classify(w.dir, err)
}
