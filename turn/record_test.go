package turn

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// fills has the journal fail, or work again, after a while.
func (m *memory) fills(after time.Duration, err error) {
	time.AfterFunc(after, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.fail = err
	})
}

var errFull = errors.New("no space left on device")

// onRecord is how many events are, without a gap.
func onRecord(t *testing.T, w *world) int {
	t.Helper()
	list := w.journal.list()
	for i, r := range list {
		if r.Event.Seq != int64(i+1) {
			t.Fatalf("event %d on record has seq %d", i+1, r.Event.Seq)
		}
	}
	return len(list)
}

// What a full disk has kept off the record comes to it once there is room, and
// calls are taken again.
func TestRecordingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		w.journal.fills(time.Second, errFull)
		w.journal.fills(3500*time.Millisecond, nil)
		want(t, run(t, turn, callOf("a", "work", 3000), callOf("b", "alone", 1)), "ok", "overloaded/journal")
		time.Sleep(journalPause)
		want(t, run(t, turn, callOf("c", "work", 1)), "ok")
		turn.End()
		if err := turn.JournalError(); err != nil || onRecord(t, w) != int(turn.Newest()) {
			t.Errorf("%d of %d events are on record, %v", onRecord(t, w), turn.Newest(), err)
		}
		ends := slices.DeleteFunc(w.journal.list(), func(r Record) bool { return r.Result == nil })
		if len(ends) != 3 {
			t.Errorf("%d results are on record", len(ends))
		}
	})
}

// The end of a turn is the last chance, and is taken however short the pause.
func TestTheEndIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		w.journal.fills(0, errFull)
		synctest.Wait()
		want(t, run(t, turn, callOf("a", "work", 1)), "overloaded/journal")
		w.journal.fills(0, nil)
		synctest.Wait()
		turn.End()
		if err := turn.JournalError(); err != nil || onRecord(t, w) != int(turn.Newest()) {
			t.Errorf("%d of %d events are on record, %v", onRecord(t, w), turn.Newest(), err)
		}
	})
}

// What the turn no longer holds stays off the record, and nothing behind it is
// put there as if it were not missing.
func TestWhatIsLostIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{})
		w.journal.fills(0, errFull)
		synctest.Wait()
		for range maxKept {
			run(t, turn, callOf("a", "work", 1))
		}
		before := onRecord(t, w)
		w.journal.fills(0, nil)
		time.Sleep(2 * journalPause)
		want(t, run(t, turn, callOf("z", "work", 1)), "overloaded/journal")
		turn.End()
		if err := turn.JournalError(); !errors.Is(err, errFull) || onRecord(t, w) != before {
			t.Errorf("%d events are on record, before %d, %v", onRecord(t, w), before, err)
		}
	})
}
