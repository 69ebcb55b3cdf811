package journal

import (
	"encoding/json"
	"time"

	"github.com/toolhost/toolhost/turn"
)

// Turns keeps the events of turns. It implements turn.Journal.
type Turns struct{ *Journal }

// Append implements turn.Journal. A result that is too large for the journal is
// left out of it; its event stays.
func (t Turns) Append(records ...turn.Record) error {
	events := make([]Event, len(records))
	for i, r := range records {
		events[i] = Event{
			TurnID: r.Event.TurnID, Seq: r.Event.Seq, Time: r.Event.Time, Kind: r.Event.Kind,
			CallID: r.Event.CallID, Tool: r.Event.Tool, JSON: r.JSON, Outcome: outcomeOf(r),
		}
	}
	return t.Journal.Append(events...)
}

func outcomeOf(r turn.Record) *Outcome {
	switch {
	case r.Event.Kind == turn.EventTurnAbort:
		return &Outcome{Reason: r.Event.Reason}
	case r.Result == nil:
		return nil
	}
	o := &Outcome{
		Status: string(r.Result.Status), Reason: r.Result.Reason,
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
