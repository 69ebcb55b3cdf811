package turn

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// recorded is how far a turn is on record.
type recorded struct {
	seq    int64     // of the newest event that is
	err    error     // why the ones behind it are not; nil if there are none
	failed time.Time // when the journal last did
	lost   bool      // what is missing is no longer held
}

const (
	// maxAppend bounds what is journalled at once.
	maxAppend = 512
	// journalPause is for how long a journal that has failed is left alone.
	journalPause = time.Second
)

// record has the new events journalled, behind those that the journal has
// failed to keep before: once there is room again, nothing is missing, unless
// the turn no longer holds what is.
func (t *Turn) record() {
	if t.m.config.Journal == nil || t.recorded.err != nil && t.now().Sub(t.recorded.failed) < journalPause {
		return
	}
	missed, held := t.log.after(t.recorded.seq)
	if !held {
		t.lose()
		return
	}
	was := t.recorded.err
	if t.recorded.err = t.append(missed); t.recorded.err != nil {
		t.recorded.failed = t.now()
	}
	t.logRecord(was)
}

// lose says why the turn goes on without its record though there may be room.
func (t *Turn) lose() {
	if !t.recorded.lost {
		t.recorded.lost, t.recorded.err = true, fmt.Errorf("events of this turn are lost to it, begin another turn: %w", t.recorded.err)
	}
}

// append journals what was missed, and then what is new.
func (t *Turn) append(missed []*Record) error {
	all := t.outbox
	if len(missed) > 0 {
		all = make([]Record, 0, len(missed)+len(t.outbox))
		for _, r := range missed {
			all = append(all, *r)
		}
		all = append(all, t.outbox...)
	}
	for some := range slices.Chunk(all, maxAppend) {
		if err := t.m.config.Journal.Append(some...); err != nil {
			return err
		}
		t.recorded.seq = some[len(some)-1].Event.Seq
	}
	return nil
}

// logRecord tells of a journal that fails, or works again. That an id is taken
// is the caller's mistake, who is told.
func (t *Turn) logRecord(was error) {
	switch is := t.recorded.err; {
	case is != nil && was == nil && !errors.Is(is, ErrTaken):
		t.m.config.Logger.Error("the journal fails: the turn takes no new calls", "turn", t.info.TurnID, "error", is)
	case is == nil && was != nil:
		t.m.config.Logger.Info("the journal works again: the turn takes new calls", "turn", t.info.TurnID)
	}
}
