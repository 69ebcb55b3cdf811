package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/api"
)

// FollowOptions say what is followed, and from where. The zero value: all turns, from the first event.
type FollowOptions struct {
	// TurnID: only this turn, which may be yet to come.
	TurnID string
	// Last begins at the end instead: only what is appended from now on.
	Last bool
}

// lookEvery is the time between two looks for new events, each of which is one seek in an index.
const lookEvery = 100 * time.Millisecond

const allPage = eventColumns + `FROM events e CROSS JOIN turns t ON t.id = e.turn
	WHERE e.pos > ? ORDER BY e.pos LIMIT ?`

// Follow gives the events that are there, then new ones as they are committed, in order and each once, also over a
// change of owner. A slow yield delays nobody but itself. Events that are pruned before they are given are left out.
// Follow returns nil when yield returns false or when the one turn that it follows has ended, ctx's cause when ctx ends,
// ErrReplaced when the database was moved aside for a new one.
func (r *Reader) Follow(ctx context.Context, o FollowOptions, yield func(Event) bool) error {
	f := follower{reader: r, turnID: o.TurnID, yield: yield}
	err := f.start(ctx, o.Last)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for err == nil && !f.over {
		if err = f.look(ctx); err != nil || f.over {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("cannot follow the journal: %w", classify(r.dir, err))
	}
	return nil
}

type follower struct {
	reader *Reader
	turnID string
	after  int64 // Seq or Pos
	yield  func(Event) bool
	over   bool
}

// start finds the end, if that is where to begin.
func (f *follower) start(ctx context.Context, last bool) error {
	if !last {
		return nil
	}
	defer f.reader.begin()()
	if f.turnID == "" {
		return f.reader.db.QueryRowContext(ctx, "SELECT coalesce(max(pos), 0) FROM events").Scan(&f.after)
	}
	return f.reader.db.QueryRowContext(ctx, `SELECT coalesce(max(e.seq), 0) FROM turns t JOIN events e ON e.turn = t.id
		WHERE t.turn_id = ?`, f.turnID).Scan(&f.after)
}

// look gives all that is new.
func (f *follower) look(ctx context.Context) error {
	given := false
	for !f.over {
		page, err := f.page(ctx)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		given = true
		f.give(ctx, page)
	}
	if given || f.over {
		return ctx.Err()
	}
	return f.idle(ctx)
}

func (f *follower) page(ctx context.Context) ([]Event, error) {
	if f.turnID == "" {
		return f.reader.page(ctx, allPage, f.after)
	}
	return f.reader.page(ctx, turnPage, f.turnID, f.after)
}

func (f *follower) give(ctx context.Context, page []Event) {
	for _, e := range page {
		if ctx.Err() != nil || !f.yield(e) {
			f.over = true
			return
		}
		f.after = e.Pos
		if f.turnID != "" {
			f.after, f.over = e.Seq, e.Kind == api.EventTurnEnd
		}
	}
}

// idle looks, when there is nothing new, whether there can be.
func (f *follower) idle(ctx context.Context) error {
	now, err := os.Lstat(filepath.Join(f.reader.dir, DatabaseName))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(f.reader.file, now):
		return ErrReplaced
	case err != nil:
		return err
	}
	if f.turnID == "" {
		return nil
	}
	return f.reader.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM turns t WHERE t.turn_id = ? AND t.ended IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM events WHERE turn = t.id AND seq > ?))`, f.turnID, f.after).Scan(&f.over)
}
