package turn

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// fills has the journal fail, or work again, after a while.
func (m *recorder) fills(after time.Duration, err error) {
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

// A call that changes nothing, by the operator's word, is put on record once, with its
// result; every other one, and one that takes its time, before as well.
func TestOneCommitOfWhatChangesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		spec    Spec
		call    Call
		commits int
	}{
		"changes nothing":       {Spec{Single: true}, callOf("a", "reads", 5), 1},
		"may change something":  {Spec{Single: true}, callOf("a", "work", 5), 2},
		"only claims it":        {Spec{Single: true}, callOf("a", "claims", 5), 2},
		"takes its time":        {Spec{Single: true}, callOf("a", "reads", 500), 2},
		"in a turn with a name": {Spec{Single: true, ID: "t"}, callOf("a", "work", 5), 3},
		"in a turn of many":     {Spec{}, callOf("a", "reads", 5), 4},
		"is refused":            {Spec{Single: true}, callOf("a", "banned", 5), 1},
		"is of a tool unknown ": {Spec{Single: true}, callOf("a", "nothing", 5), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				turn := w.begin(t, test.spec)
				run(t, turn, test.call)
				turn.End()
				if got := w.journal.commits; got != test.commits || onRecord(t, w) != int(turn.Newest()) {
					t.Errorf("%d commits of %d of %d events", got, onRecord(t, w), turn.Newest())
				}
			})
		})
	}
}

// slowly is a journal that takes its time.
type slowly struct{ *recorder }

const slowness = 50 * time.Millisecond

func (s slowly) Append(records ...Record) error {
	time.Sleep(slowness)
	return s.recorder.Append(records...)
}

// heldEnd is a journal that takes its time for the end of a turn.
type heldEnd struct {
	*recorder
	reached, release chan struct{}
}

func (h heldEnd) Append(records ...Record) error {
	if slices.ContainsFunc(records, func(r Record) bool { return r.Event.Kind == api.EventTurnEnd }) {
		close(h.reached)
		<-h.release
	}
	return h.recorder.Append(records...)
}

// Who looks for a turn finds it active, or its end on record; who has seen its end
// finds its id free.
func TestATurnIsActiveUntilItsEndIsOnRecord(t *testing.T) {
	w := newWorld()
	journal := heldEnd{w.journal, make(chan struct{}), make(chan struct{})}
	w.config.Journal = journal
	turn := w.begin(t, Spec{ID: "t"})
	go turn.End()
	<-journal.reached
	if _, ok := w.Turn("t"); !ok {
		t.Error("it is neither active nor on record to its end")
	}
	close(journal.release)
	for r := range turn.Events(t.Context(), 0) {
		if _, ok := w.Turn("t"); r.Event.Kind == api.EventTurnEnd && ok {
			t.Error("its end is shown before its id is free")
		}
	}
	<-turn.Done()
}

// A Start that waits is called beside the record of its call, and starts it behind that; a
// call that is not on record is not started.
func TestStartBesideTheRecord(t *testing.T) {
	for name, test := range map[string]struct {
		fail    error
		want    string
		started int
	}{"on record": {nil, "ok", 2}, "not on record": {errFull, "overloaded/journal", 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				begun := time.Now()
				w.config.Journal, w.config.StartWaits = slowly{w.journal}, true
				w.config.Start = func(ctx context.Context, r supervisor.Request) Running {
					if time.Since(begun) != 0 {
						t.Error("Start came behind the record")
					}
					if err := r.OnRecord(ctx); err != nil {
						return over{supervisor.Verdict{Status: api.StatusStartFailed}.Result()}
					}
					if time.Since(begun) != slowness {
						t.Errorf("started after %s", time.Since(begun))
					}
					return w.fakes.start(ctx, r)
				}
				w.journal.fail = test.fail
				turn := w.begin(t, Spec{Single: true})
				want(t, run(t, turn, callOf("a", "work", 1), callOf("b", "work", 1)), test.want, test.want)
				if len(w.fakes.started) != test.started {
					t.Errorf("started: %q", w.fakes.started)
				}
			})
		})
	}
}

// A worker is told to start a call once the journal works again: the call has run, whatever
// its beginning has met.
func TestAWorkersCallBehindAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.config.StartWaits = true
		w.config.Start = func(ctx context.Context, r supervisor.Request) Running {
			time.Sleep(journalPause + 500*time.Millisecond) // for a worker's slot
			if err := r.Placed("w1", 1); err != nil {
				return over{supervisor.Verdict{Status: api.StatusStartFailed}.Result()}
			}
			return w.fakes.start(ctx, r)
		}
		w.journal.fail = errFull
		w.journal.fills(journalPause, nil)
		want(t, run(t, w.begin(t, Spec{Single: true}), callOf("a", "work", 1)), "ok")
		if len(w.fakes.started) != 1 {
			t.Errorf("started: %q", w.fakes.started)
		}
	})
}

// While the journal fails no such call runs either: the first one finds out.
func TestWhatChangesNothingMeetsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.journal.fail = errFull
		for _, test := range []struct {
			fail       error
			want       string
			unrecorded bool
		}{{errFull, "ok", true}, {errFull, "overloaded/journal", true}, {nil, "ok", false}, {nil, "ok", false}} {
			w.journal.fail = test.fail
			turn := w.begin(t, Spec{Single: true})
			results := run(t, turn, callOf("a", "reads", 1))
			if want(t, results, test.want); results[0].Unrecorded != test.unrecorded {
				t.Errorf("unrecorded: %t", results[0].Unrecorded)
			}
			turn.End()
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

// A result that is handed over without a record says so; the record that there
// may be later does not.
func TestUnrecordedResultsSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var log bytes.Buffer
		w.config.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
		turn, other := w.begin(t, Spec{}), w.begin(t, Spec{})
		w.journal.fills(time.Second, errFull)
		w.journal.fills(4*time.Second, nil)
		var all sync.WaitGroup
		all.Go(func() { run(t, other, callOf("o", "work", 2000)) })
		results := run(t, turn, callOf("before", "work", 500), callOf("a", "work", 2000))
		all.Wait()
		if results[0].Unrecorded || !results[1].Unrecorded || !slices.ContainsFunc(results[1].Warnings, func(one string) bool {
			return strings.Contains(one, "not on record") && strings.Contains(one, errFull.Error())
		}) {
			t.Errorf("%+v, %+v", results[0], results[1])
		}
		time.Sleep(4 * time.Second)
		if r := run(t, turn, callOf("b", "work", 1))[0]; r.Unrecorded || len(r.Warnings) != 0 {
			t.Errorf("with room again: %+v", r)
		}
		turn.End()
		other.End()
		for _, r := range w.journal.list() {
			if r.Result != nil && r.Result.Unrecorded {
				t.Errorf("on record: %+v", r.Result)
			}
		}
		if said := log.String(); strings.Count(said, "the journal fails") != 1 || strings.Count(said, "the journal works again") != 1 ||
			!strings.Contains(said, "turns=2") || !strings.Contains(said, "unrecordedResults=2") {
			t.Errorf("log: %s", said)
		}
	})
}

// What a turn has done that ends while the disk is full comes to be on record once there is
// room, or at the Manager's end, also where no other turn asks for it. Refused calls do not.
func TestTurnsThatEndOnAFullDisk(t *testing.T) {
	for name, free := range map[string]func(w *world){
		"there is room again": func(w *world) { w.journal.fills(0, nil); time.Sleep(2 * journalPause) },
		"at the end":          func(w *world) { w.journal.fills(0, nil); time.Sleep(time.Millisecond); w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				var log bytes.Buffer
				w.config.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
				w.journal.fills(time.Second, errFull)
				running := w.begin(t, Spec{Single: true})
				want(t, run(t, running, callOf("a", "work", 2000)), "ok")
				running.End()
				harmless := w.begin(t, Spec{Single: true})
				want(t, run(t, harmless, callOf("b", "reads", 1)), "overloaded/journal")
				harmless.End()
				time.Sleep(5 * journalPause)
				free(w)
				synctest.Wait()
				list := w.journal.list()
				if int64(len(list)) != running.Newest() || onRecord(t, w) == 0 || list[len(list)-1].Event.Kind != api.EventTurnEnd {
					t.Errorf("%d of %d events are on record", len(list), running.Newest())
				}
				if said := log.String(); strings.Count(said, "the journal works again") != 1 || !strings.Contains(said, "lostTurns=0") {
					t.Errorf("log: %s", said)
				}
			})
		})
	}
}

// What waits for room is bounded, and what is left out is counted.
func TestLateRecordsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var log bytes.Buffer
		w.config.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
		w.begin(t, Spec{}).End()
		w.journal.fail = errFull
		large := &Record{Record: api.Record{Event: api.Event{Kind: api.EventStarted}, JSON: make([]byte, maxLateBytes/4)}}
		for range 5 {
			w.addLate([]*Record{large})
		}
		w.outage.meet(time.Now())
		if w.late.bytes > maxLateBytes || len(w.late.turns) != 3 {
			t.Errorf("%d turns of %d bytes wait", len(w.late.turns), w.late.bytes)
		}
		w.journal.fills(0, nil)
		time.Sleep(2 * journalPause)
		synctest.Wait()
		if said := log.String(); w.late.bytes != 0 || !strings.Contains(said, "lostTurns=2") {
			t.Errorf("%d bytes wait; log: %s", w.late.bytes, said)
		}
	})
}
