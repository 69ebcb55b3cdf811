package turn

import (
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
)

// maxWait is for how long an event that only tells how far a call is waits for more,
// or for the call's end, to be journalled with them.
const maxWait = 10 * time.Millisecond

// patience is that of the events which are not shown yet, and ends in time. The turn's owner
// has it.
type patience struct {
	timer *time.Timer
	// begin: the beginning of the call can wait as well.
	begin bool
}

// may says that the events can wait, which then they do.
func (w *patience) may(events []Record) bool {
	if len(events) == 0 || len(events) >= maxAppend || slices.ContainsFunc(events, w.urgent) {
		return false
	}
	if w.timer == nil {
		w.timer = time.NewTimer(maxWait)
	}
	return true
}

func (w *patience) urgent(r Record) bool {
	switch r.Event.Kind {
	case api.EventStarted, api.EventProgress, api.EventOutput, api.EventLog, api.EventOverran:
		return false
	case api.EventTurnStart, api.EventQueued:
		return !w.begin
	}
	return true
}

// over tells when time is up; it is nil if nothing waits.
func (w *patience) over() <-chan time.Time {
	if w.timer == nil {
		return nil
	}
	return w.timer.C
}

func (w *patience) end() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}
