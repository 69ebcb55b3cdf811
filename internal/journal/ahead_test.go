package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
)

// freshTurn is a whole turn whose id is new.
func freshTurn(turn string) []Event {
	events := wholeTurn(turn, "shell", "ok")
	events[0].Fresh = true
	return events
}

// behind opens a journal whose database gets nothing until release.
func behind(t *testing.T, dir string) (j *Journal, release func()) {
	t.Helper()
	j = mustOpen(t, dir, Options{Ahead: true})
	j.mu.Lock()
	return j, j.mu.Unlock
}

// An append does not wait for the database, and a reader waits for what was appended.
func TestAppendAhead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, release := behind(t, dir)
	mustAppend(t, j, freshTurn("whole")...)
	open := freshTurn("in pieces")
	for _, e := range open {
		mustAppend(t, j, e)
	}
	inside, err := j.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, inside)
	outside := mustRead(t, dir)
	read := make(chan []Event, 2)
	for _, r := range []*Reader{inside, outside} {
		go func() {
			var all []Event
			_ = r.Events("in pieces", 0, func(e Event) bool { all = append(all, e); return true })
			read <- all
		}()
	}
	eventually(t, "a reader to wait", func() bool {
		j.waitingMu.Lock()
		defer j.waitingMu.Unlock()
		return slices.ContainsFunc(j.waiting, func(r *request) bool { return len(r.events) == 0 })
	})
	if len(read) > 0 {
		t.Errorf("a reader does not wait, and has %d events", len(<-read))
	}
	release()
	for range 2 {
		expectSame(t, <-read, open)
	}
}

// Appends that come one soon behind the other share a commit, and none of them waits for it.
func TestAppendsAheadShareACommit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		j := mustOpen(t, dir, Options{Ahead: true})
		mustAppend(t, j, freshTurn("before")...)
		j.settle()
		synctest.Wait()
		before := j.writer.commits
		for i := range 5 {
			mustAppend(t, j, freshTurn(fmt.Sprint(i))...)
			time.Sleep(gatherFor / 10)
		}
		if synctest.Wait(); !j.ahead.lags() {
			t.Error("they were committed at once")
		}
		time.Sleep(gatherFor)
		if synctest.Wait(); j.ahead.lags() || j.writer.commits != before+1 {
			t.Errorf("%d commits; the database lacks some: %v", j.writer.commits-before, j.ahead.lags())
		}
		mustAppend(t, j, freshTurn("behind")...)
		time.Sleep(gatherFor)
		if synctest.Wait(); j.ahead.lags() {
			t.Error("the next one waits for ever")
		}
	})
}

// What an owner has appended ahead is there for the next one, and for a reader before that, whatever the moment in which
// it dies.
func TestWhatWasAppendedAheadIsReplayed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{Ahead: true})
	mustAppend(t, j, freshTurn("before")...)
	j.settle()
	j.mu.Lock()
	mustAppend(t, j, freshTurn("behind")...)
	mustAppend(t, j, freshTurn("last")...)
	copies := map[string]string{}
	for _, what := range []string{"next owner", "reader", "without ahead", "damaged"} {
		copies[what] = copyOf(t, dir)
	}
	j.mu.Unlock()

	mustOpen(t, copies["next owner"], Options{Ahead: true})
	mustOpen(t, copies["without ahead"], Options{})
	damage(t, filepath.Join(copies["damaged"], redoName))
	for what, dir := range copies {
		r := mustRead(t, dir)
		for _, turn := range []string{"before", "behind", "last"} {
			if what == "damaged" && turn == "last" {
				if err := r.expectTurn(turn); !errors.Is(err, ErrNotFound) {
					t.Errorf("a damaged record is taken: %v", err)
				}
				continue
			}
			expectSame(t, collect(t, r, turn, 0), freshTurn(turn))
		}
	}
	if again := mustOpen(t, copies["reader"], Options{}); !again.Report().Unclean {
		t.Error("a reader passes for the owner")
	}
}

// copyOf is a journal as it would be if its owner died now.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	copied := t.TempDir()
	if err := errors.Join(os.CopyFS(copied, os.DirFS(dir)), os.Chmod(copied, 0o700)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// damage changes the last byte of a redo log's records.
func damage(t *testing.T, name string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for i, b := range raw {
		if b != 0 {
			last = i
		}
	}
	raw[last] ^= 1
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A database that takes nothing more loses nothing of what was appended ahead of it, and the next appends fail.
func TestAheadOfAFullDatabase(t *testing.T) {
	t.Parallel()
	j := mustOpen(t, t.TempDir(), Options{Retention: Retention{MaxBytes: -1}, Ahead: true})
	var pages int
	limit := func(pages int) {
		t.Helper()
		if _, err := j.writer.database.conn.ExecContext(t.Context(), fmt.Sprint("PRAGMA max_page_count = ", pages)); err != nil {
			t.Fatal(err)
		}
	}
	j.mu.Lock()
	if err := j.writer.database.conn.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	limit(pages)
	var told []string
	for n := 0; n < 50; n++ {
		told = append(told, fmt.Sprint("t", n))
		mustAppend(t, j, freshTurn(told[n])...)
	}
	j.mu.Unlock()
	j.settle()
	expectError(t, j.Append(freshTurn("no more")...), ErrFull)
	j.mu.Lock()
	limit(1 << 20)
	j.mu.Unlock()
	mustAppend(t, j, freshTurn("again")...)
	r := mustRead(t, j.Dir())
	for _, turn := range append(told, "again") {
		expectSame(t, collect(t, r, turn, 0), freshTurn(turn))
	}
	if err := r.expectTurn("no more"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an append that has failed is on record: %v", err)
	}
}

// What the database could not take until the end is there for the next owner.
func TestCloseWithSomethingAhead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := Open(dir, Options{Ahead: true})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, freshTurn("first")...)
	j.settle()
	j.mu.Lock()
	if _, err := j.writer.database.conn.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		mustAppend(t, j, freshTurn(fmt.Sprint("t", n))...)
	}
	j.mu.Unlock()
	mustClose(t, j)
	mustOpen(t, dir, Options{})
	r := mustRead(t, dir)
	for n := range 20 {
		expectSame(t, collect(t, r, fmt.Sprint("t", n), 0), freshTurn(fmt.Sprint("t", n)))
	}
	if _, err := os.Stat(filepath.Join(dir, redoName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the redo log is left: %v", err)
	}
}

// How much the database may lack is bounded.
func TestAheadIsBounded(t *testing.T) {
	t.Parallel()
	j, release := behind(t, t.TempDir())
	const turns = 3 * maxLag / maxAheadBytes
	done := make(chan error, 1)
	go func() {
		for n := range turns {
			e := event(fmt.Sprint("t", n), 1, api.EventTurnStart)
			e.Fresh, e.JSON = true, make([]byte, maxAheadBytes/2)
			if err := j.Append(e); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	eventually(t, "an append to wait", func() bool {
		j.waitingMu.Lock()
		defer j.waitingMu.Unlock()
		return slices.ContainsFunc(j.waiting, func(r *request) bool { return !r.ahead() })
	})
	j.ahead.mu.Lock()
	if end := j.ahead.redo.end; end > redoHeadBytes+maxLag {
		t.Errorf("%d bytes are ahead", end)
	}
	j.ahead.mu.Unlock()
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	r := mustRead(t, j.Dir())
	for n := range turns {
		if err := r.expectTurn(fmt.Sprint("t", n)); err != nil {
			t.Error(err)
		}
	}
}

// An id that somebody may have used goes to the database, which knows.
func TestAheadOfATakenTurn(t *testing.T) {
	t.Parallel()
	j := mustOpen(t, t.TempDir(), Options{Ahead: true})
	mustAppend(t, j, freshTurn("a")...)
	expectError(t, j.Append(wholeTurn("a", "shell", "ok")...), ErrTurnTaken)
	mustAppend(t, j, wholeTurn("b", "shell", "ok")...)
}

// A reader that brings the database up to date has the redo log: an owner that comes then waits.
func TestAnOwnerWaitsForAReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := openRedo(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error)
	go func() {
		j, err := Open(dir, Options{})
		if err == nil {
			err = j.Close()
		}
		opened <- err
	}()
	eventually(t, "the owner's lock", func() bool {
		content, _ := os.ReadFile(filepath.Join(dir, lockName))
		return len(content) > 0
	})
	if err := errors.Join(r.leave(), <-opened); err != nil {
		t.Error(err)
	}
}

// A database that is known to be damaged gets nothing more, and the redo log stays for the next one.
func TestADamagedDatabaseIsNotAdopted(t *testing.T) {
	t.Parallel()
	j, release := behind(t, t.TempDir())
	mustAppend(t, j, freshTurn("a")...)
	dir := copyOf(t, j.Dir())
	release()
	if err := condemn(dir, ErrCorrupt); err != nil {
		t.Fatal(err)
	}
	r := mustRead(t, dir)
	if err := r.expectTurn("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("it was written to: %v", err)
	}
	next := mustOpen(t, dir, Options{})
	if next.Report().MovedAside == "" {
		t.Error("it was not moved aside")
	}
	expectSame(t, collect(t, mustRead(t, dir), "a", 0), freshTurn("a"))
}

// What belongs to a database that is moved aside stays beside it.
func TestARedoLogOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	j := mustOpen(t, t.TempDir(), Options{Ahead: true})
	turn := freshTurn("a")
	mustAppend(t, j, turn[:2]...)
	j.settle()
	j.mu.Lock()
	mustAppend(t, j, turn[2:]...)
	dir := copyOf(t, j.Dir())
	j.mu.Unlock()
	redo, err := os.ReadFile(filepath.Join(dir, redoName))
	if err == nil {
		err = condemn(dir, ErrCorrupt)
	}
	if err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir, Options{Ahead: true})
	kept, _ := filepath.Glob(filepath.Join(dir, redoName+".corrupt-*"))
	if len(kept) != 1 {
		t.Fatalf("kept: %v", kept)
	}
	if now, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(now, redo) {
		t.Errorf("it is not as it was: %v", err)
	}
}

// What the journal refuses is not tried for ever, and its turn goes to the database from then on.
func TestARefusalOfWhatWasAhead(t *testing.T) {
	t.Parallel()
	j := mustOpen(t, t.TempDir(), Options{Ahead: true})
	turn := freshTurn("a")
	mustAppend(t, j, turn[:2]...)
	j.ahead.mu.Lock()
	s := j.ahead.turns["a"]
	s.next++
	j.ahead.mu.Unlock()
	skipped := turn[2]
	skipped.Seq++
	mustAppend(t, j, skipped)
	j.settle()
	expectError(t, j.Append(skipped), nil, "bug:")
	mustAppend(t, j, turn[2:]...)
	expectSame(t, collect(t, mustRead(t, j.Dir()), "a", 0), turn)
}

func TestEventsOfARecord(t *testing.T) {
	t.Parallel()
	events := freshTurn("a")
	events = append(events, ending("a", 9, "c", "shell", "ok"), Event{TurnID: "b", JSON: []byte{}, Time: start})
	events[0].Fresh = false // which the database does not have
	raw := appendEvents(nil, events)
	got, err := decodeEvents(raw)
	if err != nil || !reflect.DeepEqual(got, events) {
		t.Errorf("%v\n%+v, want\n%+v", err, got, events)
	}
	for n := range raw {
		if got, err := decodeEvents(raw[:n]); err == nil && reflect.DeepEqual(got, events) {
			t.Errorf("%d bytes pass for all", n)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(appendEvents(nil, freshTurn("a")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if events, err := decodeEvents(raw); err == nil {
			if again, err := decodeEvents(appendEvents(nil, events)); err != nil || !reflect.DeepEqual(again, events) {
				t.Errorf("%v: %+v, was %+v", err, again, events)
			}
		}
	})
}
