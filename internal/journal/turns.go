package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

// Turns keeps the events of turns, and gives them back. It implements turn.Journal.
type Turns struct{ *Journal }

// Append implements turn.Journal. A result that is too large for the journal is
// left out of it; its event stays.
func (t Turns) Append(records ...turn.Record) error {
	events := make([]Event, len(records))
	for i, r := range records {
		events[i] = Event{
			TurnID: r.Event.TurnID, Seq: r.Event.Seq, Time: r.Event.Time, Kind: r.Event.Kind,
			CallID: r.Event.CallID, Tool: r.Event.Tool, Owner: r.Event.Owner, Fresh: r.Fresh, JSON: r.JSON, Outcome: outcomeOf(r),
		}
	}
	return t.Journal.Append(events...)
}

// Records gives a page of the turn's events with a Seq over after, in order; none of a turn that is not on record. It is a
// turn.History.
func (r *Reader) Records(turnID string, after int64) ([]*turn.Record, error) {
	page, err := r.page(context.Background(), turnPage, turnID, after)
	if err != nil {
		return nil, err
	}
	records := make([]*turn.Record, len(page))
	for i, e := range page {
		records[i] = &turn.Record{}
		records[i].JSON = e.JSON
		if err := json.Unmarshal(e.JSON, &records[i].Event); err != nil {
			return records[:i], fmt.Errorf("event %d of the turn %q: %w", e.Seq, turnID, err)
		}
	}
	return records, nil
}

// Recall is for turn.Config.
func (r *Reader) Recall(turnID, callID string) (*api.Result, error) {
	raw, err := r.Result(turnID, callID)
	if err != nil {
		return nil, err
	}
	result := &api.Result{}
	err = json.Unmarshal(raw, result)
	if string(result.Structured) == "null" { // which is nothing structured
		result.Structured = nil
	}
	return result, err
}

// Records is that of a Reader which is opened for it: few who run turns by themselves ever lag behind their memory.
func (t Turns) Records(turnID string, after int64) ([]*turn.Record, error) {
	r, err := OpenReader(t.Dir())
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Records(turnID, after)
}

func outcomeOf(r turn.Record) *Outcome {
	switch {
	case r.Event.Kind == api.EventTurnAbort:
		return &Outcome{Reason: r.Event.Reason}
	case r.Result == nil:
		return nil
	}
	o := &Outcome{
		Status: r.Result.Status, Reason: r.Result.Reason,
		Elapsed: time.Duration(r.Result.Timing.ElapsedMs) * time.Millisecond,
	}
	if r.Result.OutputBytes() > MaxResultBytes {
		return o // it would be written only to be thrown away
	}
	if raw, err := json.Marshal(r.Result); err == nil && len(raw) <= MaxResultBytes {
		o.Result = raw
	}
	return o
}
