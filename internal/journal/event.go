package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Limits of what is appended. Above them Append answers ErrTooLarge.
const (
	MaxEventBytes  = 1 << 20  // of an event's JSON
	MaxResultBytes = 64 << 20 // of a call's result
	MaxIDBytes     = 200      // of a turn's id, a call's id, a tool's name, a kind, a status and a reason
	MaxEvents      = 1024     // of one Append
)

// Event is one event of a turn.
type Event struct {
	// Pos is the event's place among those of all turns. Readers set it, Append ignores it. It only ever grows, with gaps.
	Pos int64
	// TurnID names the turn. The first event of an id starts it.
	TurnID string
	// Seq is 1, 2, 3, ... within the turn.
	Seq  int64
	Time time.Time // kept to the nanosecond; readers give it in UTC
	// Kind is stored as it is. The journal itself understands those that keep its
	// lists: the queueing, start and end of a call, whose end needs an Outcome; a
	// turn's abort, which may have one for its Reason; and a turn's end, which
	// nothing can follow.
	Kind api.EventKind
	// CallID and Tool are empty where the event belongs to no call.
	CallID, Tool string
	// Owner is that of the turn, on its first event.
	Owner string
	// Fresh: nobody can have used the turn's id before, on its first event. Append alone uses it.
	Fresh bool
	// JSON is the event exactly as it is shown.
	JSON []byte
	// Outcome says, once for each call, how it went. Append alone uses it; see Reader.Calls and Reader.Result.
	Outcome *Outcome
}

// Outcome is how a call went, committed together with the event that ends it.
type Outcome struct {
	Status  api.Status
	Reason  api.Reason
	Elapsed time.Duration // kept to the millisecond
	// Result is the whole result as JSON, stored as given; nil stores none.
	Result []byte
}

// check finds what is wrong with an event on its own.
func (e *Event) check() error {
	switch {
	case e.TurnID == "" || e.Kind == "" || len(e.JSON) == 0:
		return errors.New("bug: an event needs a turn's id, a kind and its JSON")
	case aboutCall(e.Kind) && e.CallID == "":
		return fmt.Errorf("bug: a %s needs a call's id", e.Kind)
	case endsCall(e.Kind) && (e.Outcome == nil || e.Outcome.Status == "" || e.Outcome.Status == api.StatusOpen):
		return fmt.Errorf("bug: a %s needs an outcome with a status", e.Kind)
	case len(e.JSON) > MaxEventBytes:
		return fmt.Errorf("%w: %s of %d bytes, over %d", ErrTooLarge, e.Kind, len(e.JSON), MaxEventBytes)
	}
	ids := []string{e.TurnID, e.CallID, e.Tool, e.Owner, string(e.Kind)}
	if o := e.Outcome; o != nil {
		if len(o.Result) > MaxResultBytes {
			return fmt.Errorf("%w: result of %d bytes, over %d", ErrTooLarge, len(o.Result), MaxResultBytes)
		}
		ids = append(ids, string(o.Status), string(o.Reason))
	}
	for _, id := range ids {
		if len(id) > MaxIDBytes {
			return fmt.Errorf("%w: %.20q... has %d bytes, over %d", ErrTooLarge, id, len(id), MaxIDBytes)
		}
	}
	return nil
}

func aboutCall(kind api.EventKind) bool {
	return kind == api.EventQueued || kind == api.EventStarted || endsCall(kind)
}

func endsCall(kind api.EventKind) bool { return kind == api.EventFinished || kind == api.EventFailed }

// bytes is what the event adds to the database, roughly.
func (e *Event) bytes() int64 {
	n := len(e.JSON) + 128 // as statements.turnSize has it
	if e.Outcome != nil {
		n += len(e.Outcome.Result)
	}
	return int64(n)
}
