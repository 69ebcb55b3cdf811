package journal

import (
	"encoding/json"
	"slices"
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
	if raw, err := json.Marshal(r.Result); err == nil && len(raw) <= MaxResultBytes {
		o.Result = raw
	}
	return o
}

// maxRecover bounds what is appended at once.
const maxRecover = 512

// Recover closes the turns that a dead owner has left open: each call that was
// under way gets its end, and the turn an abort by error and its own end.
func (j *Journal) Recover(now time.Time) error {
	for _, u := range j.Unfinished() {
		var events []Event
		add := func(e turn.Event, o *Outcome) error {
			e.Seq, e.Time, e.TurnID = u.NextSeq+int64(len(events)), now.UTC(), u.TurnID
			raw, err := json.Marshal(e)
			if err != nil {
				return err
			}
			events = append(events, Event{
				TurnID: e.TurnID, Seq: e.Seq, Time: e.Time, Kind: e.Kind, CallID: e.CallID, Tool: e.Tool, JSON: raw, Outcome: o,
			})
			return nil
		}
		for _, c := range u.OpenCalls {
			lost := turn.Event{Kind: "tool_failed", CallID: c.CallID, Tool: c.Tool, Status: "cancelled", Reason: "error", Display: "[CANCELLED] Turn aborted by error."}
			if err := add(lost, &Outcome{Status: "cancelled", Reason: "error"}); err != nil {
				return err
			}
		}
		if !u.Aborted {
			if err := add(turn.Event{Kind: turn.EventTurnAbort, Reason: "error"}, &Outcome{Reason: "error"}); err != nil {
				return err
			}
		}
		if err := add(turn.Event{Kind: turn.EventTurnEnd}, nil); err != nil {
			return err
		}
		for some := range slices.Chunk(events, maxRecover) {
			if err := j.Append(some...); err != nil {
				return err
			}
		}
	}
	return nil
}
