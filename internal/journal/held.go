package journal

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// holdings are what the turns of each owner hold of the journal.
type holdings struct {
	limit func(owner string) int64 // Options.OwnerBytes

	mu sync.Mutex
	of map[string]holding
}

// holding is in bytes.
type holding struct{ active, ended int64 }

// Held is how many bytes the turns of an owner hold that have not ended: what is
// pruned for its owner's sake are those that have. Where that is most or more, it is
// exact; else what was appended ahead may be missing.
func (j *Journal) Held(owner string, most int64) int64 {
	held := j.writer.held.active(owner)
	if held >= most {
		j.settle()
		held = j.writer.held.active(owner)
	}
	return held
}

func (h *holdings) active(owner string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[owner].active
}

// add changes a holding.
func (h *holdings) add(owner string, active, ended int64) (before, after holding) {
	if owner == "" {
		return before, after
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before = h.of[owner]
	after = holding{max(before.active+active, 0), max(before.ended+ended, 0)}
	if after == (holding{}) {
		delete(h.of, owner)
	} else {
		h.of[owner] = after
	}
	return before, after
}

// over says whether what has ended is to be pruned for its owner's sake.
func (h *holdings) over(owner string, sum holding) bool {
	if h.limit == nil || owner == "" || sum.ended == 0 {
		return false
	}
	most := h.limit(owner)
	return most > 0 && sum.active+sum.ended > most
}

// greedy are the owners whose turns are to be pruned.
func (h *holdings) greedy() (owners []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for owner, sum := range h.of {
		if h.over(owner, sum) {
			owners = append(owners, owner)
		}
	}
	return owners
}

// load finds out what turns hold that others have written.
func (h *holdings) load(ctx context.Context, conn *sql.Conn) error {
	rows, err := conn.QueryContext(ctx, `SELECT owner, ended IS NULL, coalesce(sum(bytes), 0)
		FROM turns WHERE owner <> '' GROUP BY owner, ended IS NULL`)
	if err != nil {
		return err
	}
	return each(rows, func() error {
		var owner string
		var active bool
		var bytes int64
		err := rows.Scan(&owner, &active, &bytes)
		if active {
			h.add(owner, bytes, 0)
		} else {
			h.add(owner, 0, bytes)
		}
		return err
	})
}

// count is what a commit has added to its turns. What an owner may have is looked at
// when a turn begins, and when those that run need the room.
func (w *writer) count(group []*request) {
	for _, r := range group {
		for i := range r.events {
			if turn := w.turns[r.events[i].TurnID]; turn != nil {
				w.countTurn(turn, r.events[i].Seq == 1)
			}
		}
	}
}

func (w *writer) countTurn(turn *turnState, begins bool) {
	before, after := w.held.add(turn.owner, turn.fresh, 0)
	turn.fresh = 0
	if w.held.over(turn.owner, after) && (begins || !w.held.over(turn.owner, before)) {
		w.pruner.begin(nil)
	}
	if turn.ended && !turn.counted {
		w.held.add(turn.owner, -turn.bytes, turn.bytes)
		turn.counted = true
	}
}

// ownVictim is the turn to be pruned next for its owner's sake, or 0. The newest one
// of each owner stays, so that its results can be read until the next begins.
func (w *writer) ownVictim() (id int64, err error) {
	for _, owner := range w.held.greedy() {
		if err = w.do.oldestOf.QueryRow(owner).Scan(&id); !errors.Is(err, sql.ErrNoRows) {
			return id, err
		}
	}
	return 0, nil
}
