package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// recorded is how far a turn is on record.
type recorded struct {
	seq    int64     // of the newest event that is
	err    error     // why the ones behind it are not; nil if all are
	failed time.Time // when the journal last did
	lost   bool      // what is missing is no longer held
	ends   bool      // with the turn: nothing comes back from it for sure
	gate   *gate     // of calls that wait for the next flush
	fresh  []*entry  // have a result since the last flush
	newID  bool      // the turn's id was made for it
}

const (
	// maxAppend bounds what is journalled at once.
	maxAppend = 64
	// journalPause is for how long a journal that has failed is left alone.
	journalPause = time.Second
)

// gate holds calls that are about to start until what came before them is on record.
type gate struct {
	open chan struct{}
	err  error // why it is not; set before open is closed
}

// wait is for supervisor.Request.OnRecord.
func (g *gate) wait(ctx context.Context) error {
	select {
	case <-g.open:
		return g.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refused says that its calls were not started.
func (g *gate) refused() bool { return g != nil && g.err != nil }

// open lets the calls that wait go on, or says to them why they cannot.
func (r *recorded) open() {
	if g := r.gate; g != nil {
		g.err = r.err
		close(g.open)
		r.gate = nil
	}
}

// record has the new events journalled, behind those that the journal has
// failed to keep before: once there is room again, nothing is missing, unless
// the turn no longer holds what is.
func (t *Turn) record() {
	if t.m.config.Journal == nil || t.recorded.err != nil && t.now().Sub(t.recorded.failed) < journalPause {
		return
	}
	missed, held := t.log.after(t.recorded.seq)
	if !held {
		t.recorded.lose()
		return
	}
	was := t.recorded.err
	if t.recorded.err = t.append(missed); t.recorded.err != nil {
		t.recorded.failed = t.now()
	}
	t.tellRecord(was)
}

// lose says why the turn goes on without its record though there may be room.
func (r *recorded) lose() {
	if !r.lost {
		r.lost, r.err = true, fmt.Errorf("events of this turn are lost to it, begin another turn: %w", r.err)
	}
}

// append journals what was missed, and then what is new.
func (t *Turn) append(missed []*Record) error {
	all := t.outbox
	if len(missed) > 0 {
		all = append(values(missed), t.outbox...)
	}
	n, err := t.m.append(all)
	if n > 0 {
		t.recorded.seq = all[n-1].Event.Seq
	}
	return err
}

func values(records []*Record) []Record {
	list := make([]Record, 0, len(records))
	for _, r := range records {
		list = append(list, *r)
	}
	return list
}

// append journals records of one turn, and says how many have been.
func (m *Manager) append(records []Record) (n int, err error) {
	for some := range slices.Chunk(records, maxAppend) {
		if err := m.config.Journal.Append(some...); err != nil {
			return n, err
		}
		n += len(some)
	}
	return n, nil
}

// tellRecord reports that the journal fails, or works again. A taken id is the
// caller's mistake and is returned.
func (t *Turn) tellRecord(was error) {
	switch is := t.recorded.err; {
	case is == nil && len(t.outbox) > 0:
		t.m.worksAgain()
	case is == nil || was != nil || errors.Is(is, ErrTaken):
	case t.m.outage.meet(t.now()):
		t.m.config.Logger.Error("the journal fails: turns take no new calls, and what runs is recorded once it works again", "turn", t.info.TurnID, "error", is)
	}
}

// worksAgain reports the end of an outage, if there is one.
func (m *Manager) worksAgain() {
	if over, ok := m.outage.end(); ok {
		m.config.Logger.Info("the journal works again", "after", time.Since(over.since).Round(time.Millisecond).String(), "turns", over.turns, "unrecordedResults", over.results, "lostTurns", over.lost)
	}
}

// tellUnrecorded has the results say so that are not on record when they are
// handed over. The record itself, should it come to be, does not say it.
func (b *batch) tellUnrecorded() {
	r := b.t.recorded
	for _, e := range b.entries {
		if r.err == nil || e.ended <= r.seq {
			continue
		}
		own := *e.result
		own.Unrecorded = true
		own.Warnings = append(slices.Clone(own.Warnings), "this result is not on record: the journal cannot be written: "+r.err.Error())
		e.result = &own
		b.t.m.outage.missed()
	}
}

// outage is a time in which the journal fails, for all turns.
type outage struct {
	mu sync.Mutex
	missing
}

// missing is what an outage has kept off the record.
type missing struct {
	since   time.Time
	turns   int // that have met it
	results int // handed over without a record
	lost    int // turns that are over, and will not be on record to their ends
}

// meet counts a turn that meets the outage; true if it is the first.
func (o *outage) meet(now time.Time) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if first = o.turns == 0; first {
		o.since = now
	}
	o.turns++
	return first
}

// lasts says whether there is one.
func (o *outage) lasts() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.turns > 0
}

// missed counts a result.
func (o *outage) missed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.results++
}

// lose counts a turn that is over.
func (o *outage) lose() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost++
}

// end ends the outage, if there is one.
func (o *outage) end() (was missing, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was, o.missing = o.missing, missing{}
	return was, was.turns > 0
}
