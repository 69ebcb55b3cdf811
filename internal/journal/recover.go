package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// Recover closes the turns that dead owners have left open, so that their events
// end as those of any other turn: an abort by error, the end of each interaction
// that was pending, for each call without a result one that says what became of
// it, with the output that is on record, and the turn's end. They have the time of
// the last event on record, and say that they were recorded now. It may be called
// again.
func (j *Journal) Recover(now time.Time) error {
	if len(j.unfinished) == 0 {
		return nil
	}
	reader, err := OpenReader(j.dir)
	if err != nil {
		return err
	}
	defer reader.Close()
	for _, u := range j.unfinished {
		r := &remains{turnID: u.TurnID, now: now.UTC(), byID: map[string]*lostCall{}}
		if err := reader.Events(u.TurnID, 0, r.take); err != nil || r.err != nil {
			return fmt.Errorf("cannot close the turn %q: %w", u.TurnID, errors.Join(err, r.err))
		}
		for some := range slices.Chunk(r.close(), MaxEvents) {
			if err := j.Append(some...); err != nil {
				return fmt.Errorf("cannot close the turn %q: %w", u.TurnID, err)
			}
		}
	}
	return nil
}

// remains is what a dead owner has left of a turn.
type remains struct {
	turnID         string
	now, last      time.Time // last is that of the last event on record
	seq            int64
	aborted, ended bool
	calls          []*lostCall
	byID           map[string]*lostCall
	asked          []*lostQuestion
	closing        []Event
	err            error
}

type lostCall struct {
	id, tool    string
	began, over bool
	start, last time.Time // its first event as a process, and the last of all
	asked       bool      // whether it may begin
	partial     api.Partial
	timeoutMs   int64      // 0 is not known, or infinite
	where       *api.Where // a worker that may have started it
}

type lostQuestion struct {
	event   api.Event // its interaction_pending
	request bool      // and it was asked
	open    bool
}

// recordedAt begins the message of what a dead owner has not recorded itself.
const recordedAt = "its host had died: recorded at "

// take notes what an event leaves to be closed.
func (r *remains) take(stored Event) bool {
	var e api.Event
	if r.err = json.Unmarshal(stored.JSON, &e); r.err != nil {
		return false
	}
	r.seq = stored.Seq
	if e.Time.After(r.last) {
		r.last = e.Time
	}
	switch e.Kind {
	case api.EventTurnAbort:
		r.aborted = true
	case api.EventTurnEnd:
		r.ended = true
	case api.EventInteractionPending, api.EventInteractionRequest, api.EventInteractionResponse:
		r.takeQuestion(e)
	case api.EventQueued:
		c := &lostCall{id: e.CallID, tool: e.Tool}
		r.calls, r.byID[c.id] = append(r.calls, c), c
	default:
		if c := r.byID[e.CallID]; c != nil {
			c.take(e)
		}
	}
	return true
}

func (r *remains) takeQuestion(e api.Event) {
	i := slices.IndexFunc(r.asked, func(q *lostQuestion) bool { return q.event.InteractionID == e.InteractionID })
	if i < 0 {
		r.asked = append(r.asked, &lostQuestion{event: e})
		i = len(r.asked) - 1
	}
	switch q := r.asked[i]; e.Kind {
	case api.EventInteractionRequest:
		q.request = true
	case api.EventInteractionResponse:
		q.request = false
	default:
		q.open = e.Pending != nil && *e.Pending
	}
}

func (c *lostCall) take(e api.Event) {
	c.last = e.Time
	switch e.Kind {
	case api.EventStarted:
		c.began, c.start, c.timeoutMs = true, e.Time, e.TimeoutMs
	case api.EventPlaced:
		c.where = e.At()
	case api.EventFinished, api.EventFailed:
		c.over, c.partial = true, api.Partial{}
	default:
		c.partial.Take(e)
	}
}

// close makes the events that the turn lacks.
func (r *remains) close() []Event {
	if r.ended {
		return nil
	}
	if !r.aborted {
		reason := api.ReasonError
		r.add(api.Event{Kind: api.EventTurnAbort, Reason: reason}, &Outcome{Reason: reason})
	}
	for _, q := range r.asked {
		r.closeQuestion(q)
	}
	for _, c := range r.calls {
		if !c.over {
			r.closeCall(c)
		}
	}
	r.add(api.Event{Kind: api.EventTurnEnd}, nil)
	return r.closing
}

func (r *remains) closeQuestion(q *lostQuestion) {
	e := q.event
	e.Pending = nil
	if c := r.byID[e.CallID]; c != nil && q.open && !c.began {
		c.asked = true
	}
	if q.request {
		response := e
		response.Kind, response.Presentation = api.EventInteractionResponse, ""
		response.Outcome, response.By = api.OutcomeCancelled, "host"
		r.add(response, nil)
	}
	if q.open {
		e.Kind, e.Pending = api.EventInteractionPending, new(bool)
		r.add(e, nil)
	}
}

func (r *remains) closeCall(c *lostCall) {
	result := c.result(r.turnID)
	raw, err := json.Marshal(result)
	if err != nil { // content that came as JSON and is none
		result.Content = []api.Content{}
		raw, _ = json.Marshal(result)
	}
	e := api.Event{
		Kind: api.EventFailed, CallID: c.id, Tool: c.tool, Status: result.Status, Reason: result.Reason, Display: result.Display(),
		ElapsedMs: result.Timing.ElapsedMs,
	}
	elapsed := time.Duration(result.Timing.ElapsedMs) * time.Millisecond
	r.add(e, &Outcome{Status: result.Status, Reason: result.Reason, Elapsed: elapsed, Result: raw})
}

// result says that the host died, and what that means for the call.
func (c *lostCall) result(turnID string) *api.Result {
	result := supervisor.Verdict{
		CallID: c.id, Tool: c.tool, Status: api.StatusCancelled, Reason: api.ReasonError,
	}.Result()
	c.partial.Fill(result)
	result.TurnID, result.Message = turnID, c.message(result.Partial)
	if c.where != nil {
		result.Status, result.Code, result.Reason = api.StatusLost, "UNKNOWN", api.ReasonUnreachable
		result.Remote = api.Remote{Where: c.where}
	}
	if c.began { // as far as there is a record of it
		result.Timing.ElapsedMs = c.last.Sub(c.start).Milliseconds()
		if c.timeoutMs > 0 {
			result.Timing.TimeoutMs = &c.timeoutMs
		}
	}
	if !c.asked {
		result.Retry = api.Retry{SideEffects: "possible", Hint: "look first at what the call has changed"}
	}
	if c.partial.Cut() {
		result.Warnings = append(result.Warnings, "not all of the output is on record")
	}
	return result
}

// message tells no more than what is on record: that a tool has begun may not
// have been by the moment of the death.
func (c *lostCall) message(partial bool) string {
	if c.asked {
		return fmt.Sprintf("[CANCELLED] The host died, or lost its journal, while a human was asked for the call of tool %q. As far as there is a record, nothing was changed.", c.tool)
	}
	if c.where != nil {
		return fmt.Sprintf("[LOST] The host died, or lost its journal, after it had given the call of tool %q to worker %s: no end is on record. The worker ends what it does not hear the host about. Side effects may have happened.", c.tool, c.where.Worker)
	}
	text := fmt.Sprintf("[CANCELLED] The host died while tool %q ran, or lost its journal: no end is on record. A host's end kills all of its tools' processes.", c.tool)
	if !c.began {
		text = fmt.Sprintf("[CANCELLED] The host died, or lost its journal, and it is not on record that tool %q had begun. A host's end kills all of its tools' processes.", c.tool)
	}
	text += " Side effects may have happened."
	if partial {
		text += " What it had sent follows."
	}
	return text
}

func (r *remains) add(e api.Event, o *Outcome) {
	r.seq++
	e.Seq, e.Time, e.TurnID = r.seq, r.last, r.turnID
	e.Message = recordedAt + r.now.Format(time.RFC3339)
	raw, err := json.Marshal(e)
	if err != nil { // no event of these kinds has anything that is not
		panic("bug: " + err.Error())
	}
	r.closing = append(r.closing, Event{
		TurnID: e.TurnID, Seq: e.Seq, Time: e.Time, Kind: e.Kind, CallID: e.CallID, Tool: e.Tool, JSON: raw, Outcome: o,
	})
}
