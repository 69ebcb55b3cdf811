package turn

import (
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// callsOver ends calls when the turn has no time left for them. Mostly their own timeouts
// come first, which are no longer than what was left. But what a call waits for behind its
// grant, such as its place or a human, moves its end.
type callsOver struct{ timer *time.Timer }

// arm sets the timer anew: the clocks run, or stand still.
func (c *callsOver) arm(t *Turn) {
	c.stop()
	now := t.now()
	if at, ok := c.at(t, now); ok && t.batch != nil && t.reason == "" {
		c.timer = time.AfterFunc(at.Sub(now), func() { t.post(func() { c.end(t) }) })
	}
}

func (c *callsOver) stop() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

// at is behind the end of the time for calls, for their own timeouts, whose results say
// more.
func (c *callsOver) at(t *Turn, now time.Time) (at time.Time, ok bool) {
	at, ok = t.budget.Ends(now)
	return at.Add(budget.MinCall), ok
}

func (c *callsOver) end(t *Turn) {
	now := t.now()
	if at, ok := c.at(t, now); !ok || at.After(now) || t.batch == nil { // it was moved meanwhile
		c.arm(t)
		return
	}
	for _, e := range t.batch.entries {
		if e.stage == stageRunning && e.questions == 0 && !e.place.rests && e.running.reason == "" {
			e.notes = append(e.notes, "the call was ended: "+string(t.budget.Refuses(now)))
			e.running.abort(api.ReasonTimeout)
		}
	}
}
