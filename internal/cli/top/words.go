package top

import (
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/toolhost/toolhost/api"
)

// Question is what a call waits for a human to answer; nil if it doesn't.
func Question(t api.Turn, callID string) *api.Interaction {
	for i, q := range t.PendingInteractions {
		if q.CallID == callID || strings.HasPrefix(q.CallID, callID+"#") { // an id that the turn has seen before
			return &t.PendingInteractions[i]
		}
	}
	return nil
}

// State is that of a call; a question of the tool's own counts as asking.
func State(t api.Turn, c api.CurrentTool) string {
	if Question(t, c.CallID) != nil {
		return "asking"
	}
	return c.State
}

// Shown is a call's state for people.
func Shown(t api.Turn, c api.CurrentTool) string {
	if state := State(t, c); state != "asking" {
		return state
	}
	return "waiting for you"
}

// ran is how long a call has run, without the time that it has waited for
// humans: its clocks stand still then.
func ran(c api.CurrentTool, now time.Time) time.Duration {
	return max(now.Sub(c.StartedAt)-time.Duration(c.HumanWaitMs)*time.Millisecond, 0)
}

// Elapsed is how long a call has run, of how long it may, waits for humans left
// out; empty if it has not begun.
func Elapsed(c api.CurrentTool, now time.Time) string {
	if c.StartedAt.IsZero() {
		return ""
	}
	text := short(ran(c, now))
	if c.TimeoutMs > 0 {
		text += " of " + short(time.Duration(c.TimeoutMs)*time.Millisecond)
	}
	return text
}

// short is a time with a tenth of a second below one minute.
func short(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Memory is what a call's processes use, or empty.
func Memory(c api.CurrentTool) string {
	if c.Usage == nil {
		return ""
	}
	return units.BytesSize(float64(c.Usage.MemoryBytes))
}
