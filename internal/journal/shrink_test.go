package journal

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

// fortyTurns is a journal of as many large turns that keeps them for an hour, with a
// reader that is open; now moves its clock.
func fortyTurns(t *testing.T) (dir string, j *Journal, reader *Reader, now *atomic.Pointer[time.Time]) {
	t.Helper()
	dir, now = t.TempDir(), new(atomic.Pointer[time.Time])
	now.Store(&start)
	j = mustOpen(t, dir, Options{Retention: Retention{MaxAge: time.Hour}, Now: func() time.Time { return *now.Load() }})
	for n := range 40 {
		appendBulk(t, j, fmt.Sprint("t", n), 20)
	}
	if err := j.checkpoint(); err != nil { // what is in the log alone is not in the file's size
		t.Fatal(err)
	}
	reader, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	return dir, j, reader, now
}

// What was pruned is given back to the file system at once, also beside a reader
// that is open for as long as a daemon lives.
func TestPruningShrinksTheFile(t *testing.T) {
	t.Parallel()
	dir, j, reader, now := fortyTurns(t)
	if turns, err := reader.Turns(api.Filter{}); err != nil || len(turns) != 40 {
		t.Fatalf("%d turns, %v", len(turns), err)
	}
	before := fileBytes(t, dir)
	now.Store(new(start.Add(2 * time.Hour)))
	if turns, err := j.Prune(t.Context()); err != nil || turns != 40 {
		t.Fatalf("pruned %d turns, %v", turns, err)
	}
	if after := fileBytes(t, dir); after > before/10 {
		t.Errorf("the file has %d bytes, and had %d", after, before)
	}
	mustClose(t, j)
}

// A reader in the middle of something keeps the file as it is; the next pass makes
// up for that, though there is nothing more to prune.
func TestPruningShrinksTheFileAfterAReader(t *testing.T) {
	t.Parallel()
	dir, j, reader, now := fortyTurns(t)
	tx, err := reader.db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var turns int
	if err := tx.QueryRow("SELECT count(*) FROM turns").Scan(&turns); err != nil || turns != 40 {
		t.Fatalf("%d turns, %v", turns, err)
	}
	before := fileBytes(t, dir)
	now.Store(new(start.Add(2 * time.Hour)))
	for _, want := range []int{40, 0} {
		if got, err := j.Prune(t.Context()); err != nil || got != want {
			t.Fatalf("pruned %d turns, %v", got, err)
		}
		if want != 0 {
			if got := fileBytes(t, dir); got < before {
				t.Fatalf("the reader's file has shrunk from %d to %d bytes: this test shows nothing", before, got)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := fileBytes(t, dir); after > before/10 {
		t.Errorf("the file has %d bytes, and had %d", after, before)
	}
	mustClose(t, j)
}
