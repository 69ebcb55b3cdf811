package journal

import (
	"fmt"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

// What was pruned leaves its id to nobody, over a change of owner as well.
func TestIdsOfTurnsAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{Retention: Retention{MaxAge: -1}})
	for n := range 3 {
		mustAppend(t, j, wholeTurn(fmt.Sprint("t", n), "shell", "ok")...)
	}
	mustClose(t, j)
	j = mustOpen(t, dir, Options{Retention: Retention{MaxAge: 1}, Now: func() time.Time { return start.Add(time.Hour) }})
	expectPruned(t, j, 3)
	mustClose(t, j)
	expectTurnID(t, dir, "next", 4)
}

// A journal of before schema6 goes on counting where it was.
func TestIdsOfTurnsOfBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeFirst(t, dir, `INSERT INTO turns (turn_id, started) VALUES ('old', 1);
		INSERT INTO events VALUES (1, 1, 1, 1, 'turn_start', '', '', '{}');
		INSERT INTO turns (id, turn_id, started) VALUES (100, 'pruned', 2); DELETE FROM turns WHERE id = 100`)
	expectTurnID(t, dir, "next", 101)
	if got := collect(t, mustRead(t, dir), "old", 0); len(got) != 1 || string(got[0].JSON) != "{}" {
		t.Errorf("the old turn has %+v", got)
	}
}

// expectTurnID begins a turn, and looks at the database.
func expectTurnID(t *testing.T, dir, turn string, want int64) {
	t.Helper()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, event(turn, 1, api.EventTurnStart))
	r := mustRead(t, dir)
	if err := quickCheck(t.Context(), r.db); err != nil {
		t.Error(err)
	}
	var id, counted int64
	err := r.db.QueryRow("SELECT id, (SELECT count(*) FROM sqlite_sequence) FROM turns WHERE turn_id = ?", turn).Scan(&id, &counted)
	if err != nil || id != want || counted != 0 {
		t.Errorf("the turn has the id %d, want %d; SQLite counts the ids of %d tables; error %v", id, want, counted, err)
	}
	mustClose(t, j)
}
