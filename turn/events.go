package turn

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/toolhost/toolhost/api"
)

// History reads a Journal: the first events of a turn after a seq, in order, as
// many as it chooses but at least one if there are any. Fields for
// Config.Observe and Result are not set. It must be safe for concurrent use.
type History func(turnID string, after int64) ([]*Record, error)

// Events yields the turn's events after a seq, 0 for all, in order and each once,
// until the turn is over. Events that the turn no longer holds come from
// Config.History. Those that are not there either are replaced by one record with
// a Gap, whose Event.Seq is that of the last missing event. So a reader sees every
// seq, by itself or in a gap, and may resume after any of them by another call.
//
// A slow reader delays nobody, and holds at most 64 KiB of events, or one event.
// Readers share the records and must not change them. When ctx ends, Events yields
// the records so far, and then ctx's cause without a record. It yields no other
// error.
func (t *Turn) Events(ctx context.Context, after int64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for seq := after; ; {
			ended := ctx.Err() != nil // before looking: nothing that came before it is left out
			p := t.log.page(seq)
			if seq < p.first-1 {
				p.records = t.past(seq, p.first-1)
			}
			switch {
			case len(p.records) > 0:
			case p.over:
				return
			case ended:
				yield(nil, context.Cause(ctx))
				return
			default:
				await(ctx, p.changed)
			}
			for i, r := range p.records {
				p.records[i] = nil // a reader that takes its time holds only what is to come
				seq = r.Event.Seq
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

func await(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// Newest returns the seq of the last event so far.
func (t *Turn) Newest() int64 { return t.log.newest() }

// past returns at least one record after seq, and none after to.
func (t *Turn) past(seq, to int64) (records []*Record) {
	for _, r := range t.onRecord(seq) {
		if r.Event.Seq <= seq || r.Event.Seq > to {
			continue
		}
		if r.Event.Seq > seq+1 {
			records = append(records, t.gap(seq+1, r.Event.Seq-1))
		}
		records, seq = append(records, r), r.Event.Seq
	}
	if len(records) == 0 {
		records = append(records, t.gap(seq+1, to))
	}
	return records
}

func (t *Turn) onRecord(seq int64) []*Record {
	if t.m.config.History == nil {
		return nil
	}
	records, err := t.m.config.History(t.info.TurnID, seq)
	if err != nil {
		t.m.config.Logger.Warn("cannot read a turn's events from the journal", "turn", t.info.TurnID, "error", err)
	}
	return records
}

func (t *Turn) gap(from, to int64) *Record {
	g := &api.Gap{TurnID: t.info.TurnID, From: from, To: to}
	raw, _ := json.Marshal(g)
	return &Record{Record: api.Record{Event: api.Event{Seq: to, Time: t.now().UTC(), TurnID: g.TurnID, Kind: api.EventGap}, JSON: raw, Gap: g}}
}

// emit numbers an event. It is shown by the next flush.
func (t *Turn) emit(e api.Event, result *api.Result) {
	t.seq++
	e.Seq, e.Time, e.TurnID = t.seq, t.now().UTC(), t.info.TurnID
	raw, err := json.Marshal(e)
	if err != nil { // only content that came as JSON and is none
		e.Content, e.Schema, e.Default = nil, nil, nil
		raw, _ = json.Marshal(e)
	}
	t.outbox = append(t.outbox, Record{Record: api.Record{Event: e, JSON: raw}, Result: result, Fresh: t.recorded.newID && t.seq == 1})
}

// flush journals the new events together, shows them, and releases those who wait
// for them. While the journal fails, the turn takes no new calls; running calls go
// on to their end, and their events are still shown.
func (t *Turn) flush() {
	t.patience.end()
	t.record()
	if t.recorded.ends { // not before its end is on record, and not behind those who see it
		t.m.remove(t)
	}
	t.recorded.open()
	t.recorded.shelve(t.m)
	if len(t.outbox) > 0 {
		t.log.add(t.outbox)
	}
	for _, b := range t.flushed {
		b.tellUnrecorded()
		close(b.done)
	}
	t.flushed = nil
	refused := t.recorded.err != nil && t.seq == 1 // then there is no turn
	if observe := t.m.config.Observe; observe != nil && len(t.outbox) > 0 && !refused {
		observe(t.outbox)
	}
	clear(t.outbox) // their content is not held on to
	t.outbox = t.outbox[:0]
}
