package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/api"
)

// loud makes a turn run calls whose results have size bytes each.
func loud(t *testing.T, turn *Turn, calls, size int) {
	t.Helper()
	for i := range calls {
		raw, _ := json.Marshal(fakeArgs{Ms: 1, Say: fmt.Sprint(turn.Newest()) + strings.Repeat("x", size)}) // not the same twice
		run(t, turn, Call{ID: fmt.Sprint(i), Tool: "work", Arguments: raw})
	}
}

// told is what a reader was told of: seqs, and the gaps between them.
type told struct {
	seqs []int64
	gaps []api.Gap
	last int64
}

func (l *told) take(t *testing.T, r *Record) {
	from := r.Event.Seq
	if g := r.Gap; g != nil {
		from = g.From
		l.gaps = append(l.gaps, *g)
		if want := fmt.Sprintf(`{"turnId":%q,"fromSeq":%d,"toSeq":%d}`, r.Event.TurnID, g.From, g.To); string(r.JSON) != want || r.Event.Kind != api.EventGap || g.To != r.Event.Seq {
			t.Errorf("gap %s, event %+v, want %s", r.JSON, r.Event, want)
		}
	} else {
		l.seqs = append(l.seqs, r.Event.Seq)
		var own api.Event
		if err := json.Unmarshal(r.JSON, &own); err != nil || own.Seq != r.Event.Seq || own.Kind != r.Event.Kind {
			t.Errorf("event %+v has the JSON %s", r.Event, r.JSON)
		}
	}
	if from != l.last+1 {
		t.Errorf("event %d after %d", from, l.last)
	}
	l.last = r.Event.Seq
}

// all reads a turn's events, without waiting for more.
func all(t *testing.T, turn *Turn, after int64) *told {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	l := &told{last: after}
	for r, err := range turn.Events(ctx, after) {
		if err == nil {
			l.take(t, r)
		} else if !errors.Is(err, enough) || r != nil {
			t.Errorf("the end: %+v, %v", r, err)
		}
	}
	return l
}

// Every reader sees every event once, or the gap that it is in, wherever it
// begins: from the journal, from memory, and both together.
func TestEventsFromAnywhere(t *testing.T) {
	for _, size := range []int{10, 16 << 10, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			turn := w.begin(t, Spec{Budget: unlimited})
			calls := map[int]int{10: 2000, 16 << 10: 400, 1 << 20: 6}[size]
			loud(t, turn, calls, size)
			if n := turn.log.bytes; n > maxKeptBytes || turn.log.first() == 1 {
				t.Fatalf("%d bytes are kept, from event %d", n, turn.log.first())
			}
			newest, oldest := turn.Newest(), turn.log.first()
			for _, after := range []int64{0, 1, oldest - 3, oldest - 2, oldest - 1, oldest, newest - 1, newest} {
				w.journal.lost = nil
				if got := all(t, turn, after); got.last != newest || len(got.gaps) > 0 {
					t.Errorf("%d bytes, after %d: up to %d of %d, gaps %v", size, after, got.last, newest, got.gaps)
				}
				w.journal.lost = map[int64]bool{}
				for seq := range oldest {
					w.journal.lost[seq] = true
				}
				var want []api.Gap
				if after < oldest-1 {
					want = []api.Gap{{TurnID: turn.ID(), From: after + 1, To: oldest - 1}}
				}
				if got := all(t, turn, after); got.last != newest || !reflect.DeepEqual(got.gaps, want) {
					t.Errorf("%d bytes, after %d: up to %d of %d, gaps %v, want %v", size, after, got.last, newest, got.gaps, want)
				}
			}
			turn.End()
			if got := all(t, turn, newest+5); got.last != newest+5 {
				t.Errorf("behind the end there is %+v", got)
			}
		})
	}
}

// A gap is what the journal lacks, no more and no less, wherever that is.
func TestGapsAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{Budget: unlimited})
		loud(t, turn, 6, 1<<20)
		oldest := turn.log.first()
		if oldest < 8 {
			t.Fatalf("the oldest is %d", oldest)
		}
		for _, test := range []struct {
			lost []int64
			want []api.Gap
		}{
			{nil, nil},
			{[]int64{1}, []api.Gap{{TurnID: turn.ID(), From: 1, To: 1}}},
			{[]int64{2, 3}, []api.Gap{{TurnID: turn.ID(), From: 2, To: 3}}},
			{[]int64{1, 3, 5}, []api.Gap{{TurnID: turn.ID(), From: 1, To: 1}, {TurnID: turn.ID(), From: 3, To: 3}, {TurnID: turn.ID(), From: 5, To: 5}}},
			{[]int64{oldest - 2, oldest - 1}, []api.Gap{{TurnID: turn.ID(), From: oldest - 2, To: oldest - 1}}},
			{[]int64{oldest - 1, oldest, oldest + 1}, []api.Gap{{TurnID: turn.ID(), From: oldest - 1, To: oldest - 1}}},
		} {
			w.journal.lost = map[int64]bool{}
			for _, seq := range test.lost {
				w.journal.lost[seq] = true
			}
			if got := all(t, turn, 0); !reflect.DeepEqual(got.gaps, test.want) || got.last != turn.Newest() {
				t.Errorf("lost %v: gaps %v, want %v", test.lost, got.gaps, test.want)
			}
		}
		w.journal.fail = errFull // a journal that cannot be read is none
		w.journal.records = nil
		if got := all(t, turn, 0); !reflect.DeepEqual(got.gaps, []api.Gap{{TurnID: turn.ID(), From: 1, To: oldest - 1}}) {
			t.Errorf("gaps %v", got.gaps)
		}
		w.journal.fail = nil
		turn.End()
	})
}

// Readers of any pace, from any time on, see a turn to its end, and what was
// there when their context ended.
func TestReadersKeepTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		turn := w.begin(t, Spec{Budget: unlimited})
		var reading sync.WaitGroup
		reader := func(pace int, after int64) {
			reading.Go(func() {
				l := &told{last: after}
				for r, err := range turn.Events(t.Context(), after) {
					if err != nil {
						t.Error(err)
						return
					}
					l.take(t, r)
					slept(t.Context(), pace)
				}
				if l.last != turn.Newest() || len(l.gaps) > 0 {
					t.Errorf("pace %d: up to %d of %d, gaps %v", pace, l.last, turn.Newest(), l.gaps)
				}
			})
		}
		for _, pace := range []int{0, 1, 10, 100} {
			reader(pace, 0)
		}
		loud(t, turn, 50, 200<<10)
		late := turn.Newest()
		reader(0, 0)
		reader(7, late)
		loud(t, turn, 5, 10)
		turn.End()
		reader(0, 0) // it is over
		reading.Wait()
		if w.journal.reads == 0 {
			t.Error("nobody has read the journal")
		}
	})
}

// What stands still costs nothing: a reader that is ahead waits, and a page is
// small.
func TestPagesAreBounded(t *testing.T) {
	for _, size := range []int{10, 16 << 10, maxPageBytes, maxPageBytes + 1, maxKeptBytes + 1} {
		l := eventLog{all: &atomic.Int64{}}
		for seq := range int64(40) {
			l.add([]Record{{Record: api.Record{Event: api.Event{Seq: seq + 1}, JSON: make([]byte, size)}}})
		}
		if first := l.first(); first > 40 || l.bytes > maxKeptBytes && len(l.records) > 1 {
			t.Errorf("%d bytes each: the first is %d, %d bytes", size, first, l.bytes)
		}
		for seq := l.first() - 1; seq < 40; {
			p, held := l.page(seq), 0
			for _, r := range p.records {
				if seq++; r.Event.Seq != seq {
					t.Fatalf("event %d, want %d", r.Event.Seq, seq)
				}
				held += r.bytes()
			}
			if n := len(p.records); n == 0 || n > 1 && held > maxPageBytes || p.changed != nil {
				t.Fatalf("%d events of %d bytes are given at once", n, size)
			}
		}
		p := l.page(40)
		if p.records != nil || p.changed == nil || p.over {
			t.Errorf("at the end: %+v", p)
		}
		l.end()
		<-p.changed
		if p = l.page(99); !p.over {
			t.Error("the end is not told")
		}
	}
}

// Turns that only stand there do not add up to more than a registry may hold, and
// give it back at their end.
func TestAllTurnsTogetherAreBounded(t *testing.T) {
	const turns = 256
	var all atomic.Int64
	logs := make([]eventLog, turns)
	for i := range logs {
		logs[i].all = &all
		for seq := range int64(64) {
			logs[i].add([]Record{{Record: api.Record{Event: api.Event{Seq: seq + 1}, JSON: make([]byte, maxPageBytes)}}})
		}
	}
	if most := int64(maxAllKeptBytes + maxKeptBytes + turns*2*maxPageBytes); all.Load() > most {
		t.Errorf("%d turns hold %d bytes, over %d", turns, all.Load(), most)
	}
	for i := range logs {
		if len(logs[i].records) == 0 {
			t.Fatalf("log %d holds nothing for who is just behind", i)
		}
		logs[i].end()
	}
	if left := all.Load(); left != 0 {
		t.Errorf("%d bytes count after the end", left)
	}
}

// Behind any seq beyond the last event there is nothing yet, behind the largest, too.
func TestEventsBehindAllSeqs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newWorld().begin(t, Spec{})
		defer turn.End()
		for _, after := range []int64{turn.Newest(), turn.Newest() + 1, math.MaxInt64 - 1, math.MaxInt64} {
			if got := all(t, turn, after); len(got.seqs) > 0 || len(got.gaps) > 0 {
				t.Errorf("after %d: %+v", after, got)
			}
		}
	})
}
