package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

func TestPruneByAge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := start.Add(time.Hour)
	j := mustOpen(t, dir, Options{Retention: Retention{MaxAge: 90 * time.Minute}, Now: func() time.Time { return now }})
	late := wholeTurn("late", "shell", "ok")
	for i := range late {
		late[i].Time = late[i].Time.Add(time.Hour)
	}
	mustAppend(t, j, event("open", 1, "turn_start"))
	mustAppend(t, j, wholeTurn("old", "shell", "ok")...)
	mustAppend(t, j, late...)
	expectPruned(t, j, 0)
	mustClose(t, j)

	now = start.Add(2 * time.Hour)
	j = mustOpen(t, dir, Options{Retention: Retention{MaxAge: -1}, Now: func() time.Time { return now }})
	expectPruned(t, j, 0)
	mustClose(t, j)

	r := mustRead(t, dir)
	// Opening is enough.
	j = mustOpen(t, dir, Options{Retention: Retention{MaxAge: 90 * time.Minute}, Now: func() time.Time { return now }})
	eventually(t, "the old turn to be pruned", func() bool {
		return errors.Is(r.Events("old", 0, func(Event) bool { return true }), ErrNotFound)
	})
	expectPruned(t, j, 1) // also what went unasked
	expectPruned(t, j, 0)
	expectSame(t, collect(t, r, "late", 0), late)
	collect(t, r, "open", 0)
	_, err := r.Result("old", "c1")
	expectError(t, err, ErrNotFound)
}

func expectPruned(t *testing.T, j *Journal, want int) {
	t.Helper()
	if turns, err := j.Prune(t.Context()); err != nil || turns != want {
		t.Errorf("%d turns were pruned, want %d, error %v", turns, want, err)
	}
}

func TestPruneBySize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const limit = 1 << 20
	j := mustOpen(t, dir, Options{Retention: Retention{MaxBytes: -1}})
	mustAppend(t, j, event("open", 1, "turn_start"))
	const turns, each = 40, 20 // about 16 MiB
	for n := range turns {
		appendBulk(t, j, fmt.Sprint("t", n), each)
	}
	mustClose(t, j)
	before := fileBytes(t, dir)

	j = mustOpen(t, dir, Options{Retention: Retention{MaxBytes: limit}})
	if _, err := j.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := fileBytes(t, dir); before < 14<<20 || after > limit+256<<10 {
		t.Errorf("the file shrank from %d to %d bytes, limit %d", before, after, limit)
	}
	r := mustRead(t, dir)
	left, err := r.Turns(api.Filter{})
	if err != nil || len(left) < 2 || len(left) > 4 {
		t.Fatalf("%d turns are left, error %v", len(left), err)
	}
	for i, turn := range left[:len(left)-1] { // the newest, and the one that is open
		if want := fmt.Sprint("t", turns-1-i); turn.TurnID != want || turn.Events != each+1 {
			t.Errorf("left is %+v, want %s", turn, want)
		}
	}
	if left[len(left)-1].TurnID != "open" {
		t.Errorf("an open turn was pruned; left: %+v", left)
	}
	expectEmptied(t, j)
	if err := quickCheck(t.Context(), r.db); err != nil {
		t.Error(err)
	}
}

// A turn that ended while the clock was ahead is as old as what was recorded beside it.
func TestPruneBySizeAfterAClockAhead(t *testing.T) {
	t.Parallel()
	now := start.Add(time.Hour)
	j := mustOpen(t, t.TempDir(), Options{Retention: Retention{MaxBytes: 512 << 10}, Now: func() time.Time { return now }})
	for turn, ahead := range []int{1, 0} { // each fits alone
		id := fmt.Sprint("t", turn)
		begin, end := event(id, 1, api.EventTurnStart), event(id, 2, api.EventTurnEnd)
		begin.JSON, end.Time = make([]byte, 300<<10), end.Time.AddDate(ahead, 0, 0)
		mustAppend(t, j, begin, end)
	}
	expectPruned(t, j, 1)
	if turns, err := mustRead(t, j.Dir()).Turns(api.Filter{}); err != nil || len(turns) != 1 || turns[0].TurnID != "t1" {
		t.Errorf("left: %+v, %v", turns, err)
	}
}

// expectEmptied wants no rows of turns that are gone.
func expectEmptied(t *testing.T, j *Journal) {
	t.Helper()
	var orphans int
	err := j.writer.database.conn.QueryRowContext(t.Context(), `SELECT
		(SELECT count(*) FROM events WHERE turn NOT IN (SELECT id FROM turns)) +
		(SELECT count(*) FROM calls WHERE turn NOT IN (SELECT id FROM turns)) +
		(SELECT count(*) FROM results WHERE call NOT IN (SELECT id FROM calls)) +
		(SELECT count(*) FROM pruning)`).Scan(&orphans)
	if err != nil || orphans != 0 {
		t.Errorf("%d rows were left behind, error %v", orphans, err)
	}
}

// Where audit records alone have more than the bound, turns are still kept, up to half of it.
func TestAuditRecordsLeaveRoomForTurns(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	j := mustOpen(t, t.TempDir(), Options{Retention: Retention{MaxBytes: limit}})
	audit := func(n int) {
		t.Helper()
		for range n {
			if _, err := j.Audit(Audit{Time: start, What: strings.Repeat("x", maxAuditRunes), Outcome: strings.Repeat("y", maxAuditRunes)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect := func(want ...string) {
		t.Helper()
		if _, err := j.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		turns, err := mustRead(t, j.Dir()).Turns(api.Filter{})
		var got []string
		for _, one := range turns {
			got = append(got, one.TurnID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("turns %q, want %q; %v", got, want, err)
		}
	}
	audit(1500)
	mustAppend(t, j, wholeTurn("small", "shell", "ok")...)
	expect("small")
	audit(500)
	expect("small")
	appendBulk(t, j, "first", 30)
	appendBulk(t, j, "second", 30)
	expect("second")
}

func TestPruneWhileAppending(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const limit = 2 << 20
	j := mustOpen(t, dir, Options{Retention: Retention{MaxBytes: limit}})
	for n := range 60 {
		appendBulk(t, j, fmt.Sprint("t", n), 20)
	}
	mustClose(t, j)
	if size := fileBytes(t, dir); size > 2*limit {
		t.Errorf("the file has %d bytes, limit %d", size, limit)
	}
}

// appendBulk appends an ended turn of so many events of 20 kB, with a call and its result.
func appendBulk(t testing.TB, j *Journal, turn string, events int64) {
	t.Helper()
	mustAppend(t, j, callEvent(turn, 1, api.EventQueued, "c", "shell"))
	for seq := int64(2); seq < events; seq++ {
		e := bulky(seq)
		e.TurnID = turn
		mustAppend(t, j, e)
	}
	mustAppend(t, j, ending(turn, events, "c", "shell", "ok"), event(turn, events+1, api.EventTurnEnd))
}

func fileBytes(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, DatabaseName))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestPrunedWhileRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := start
	j := mustOpen(t, dir, Options{Retention: Retention{MaxAge: time.Hour}, Now: func() time.Time { return now }})
	for seq := range int64(3 * maxPageEvents) {
		mustAppend(t, j, event("t", seq+1, "x"))
	}
	mustAppend(t, j, event("t", 3*maxPageEvents+1, api.EventTurnEnd))
	expectPruned(t, j, 0)
	r := mustRead(t, dir)
	n := 0
	err := r.Events("t", 0, func(Event) bool {
		if n++; n == 1 {
			now = start.Add(24 * time.Hour) // run is idle
			expectPruned(t, j, 1)
		}
		return true
	})
	expectError(t, err, ErrNotFound)
	if n != maxPageEvents {
		t.Errorf("%d events were given", n)
	}
	mustAppend(t, j, event("t", 1, "x")) // the name is free again
	if got := collect(t, r, "t", 0); len(got) != 1 || got[0].Pos <= 3*maxPageEvents {
		t.Errorf("got %+v", got)
	}
}

// Pruning takes its turn among those who append: none of them waits for more than one step.
func TestPruningTakesItsTurn(t *testing.T) {
	t.Parallel()
	var j *Journal
	var chosen, outOfTurn int
	var late bool
	now := func() time.Time {
		if !late {
			return start
		}
		chosen++
		if len(j.leading) == 0 {
			outOfTurn++
		}
		return start.Add(2 * time.Hour)
	}
	j = mustOpen(t, t.TempDir(), Options{Retention: Retention{MaxAge: time.Hour}, Now: now})
	for n := range 40 {
		mustAppend(t, j, wholeTurn(fmt.Sprint("t", n), "shell", "ok")...)
	}
	expectPruned(t, j, 0)
	j.mu.Lock()
	late = true
	j.mu.Unlock()
	expectPruned(t, j, 40)
	if chosen == 0 || outOfTurn > 0 {
		t.Errorf("%d of %d turns were chosen while nobody led", outOfTurn, chosen)
	}
}

// Small turns go many at a time: a transaction of its own for each would write their pages again and again.
func TestSmallTurnsArePrunedTogether(t *testing.T) {
	t.Parallel()
	now := start
	j := mustOpen(t, t.TempDir(), Options{Retention: Retention{MaxAge: time.Hour}, Now: func() time.Time { return now }})
	const turns = 60
	for n := range turns {
		mustAppend(t, j, wholeTurn(fmt.Sprint("t", n), "shell", "ok")...)
	}
	expectPruned(t, j, 0)
	j.mu.Lock()
	defer j.mu.Unlock()
	now = start.Add(2 * time.Hour)
	steps := 0
	for more := true; more; steps++ {
		var err error
		if more, err = j.writer.pruneStep(); err != nil {
			t.Fatal(err)
		}
	}
	if pruned := j.writer.pruner.turns; pruned != turns || steps > turns/2 {
		t.Errorf("%d of %d turns were pruned in %d steps", pruned, turns, steps)
	}
}
