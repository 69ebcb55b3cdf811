package turn

import (
	"slices"

	"github.com/toolhost/toolhost/api"
)

// Info is a snapshot of an active turn. Times are by the host's clock, and lists are empty
// rather than nil.
type Info struct {
	api.Turn
	// Running has, for each of CurrentTools, the value of Config.Start; nil before the
	// start, and for session_status.
	Running []Running `json:"-"`
}

// Info returns a snapshot of the turn; ok is false if it is over. Info may wait for the turn's
// goroutine, but never for a call or a human.
func (t *Turn) Info() (info Info, ok bool) {
	ok = t.do(func() { info = t.describe() })
	return info, ok
}

func (t *Turn) describe() Info {
	info := Info{Turn: t.info}
	info.ToolCallCount = t.budget.Calls()
	info.CurrentTools, info.Running = t.batch.current()
	now := t.now()
	info.Streaming, info.StreamMs, info.StreamLeftMs = t.budget.IsStreaming(), t.budget.StreamTime(now).Milliseconds(), t.budget.StreamLeft(now).Milliseconds()
	info.TimedOutTools = append([]string{}, t.info.TimedOutTools...)
	info.PendingInteractions = []api.Interaction{}
	for _, p := range t.pendings {
		if p.raised {
			info.PendingInteractions = append(info.PendingInteractions, p.Interaction)
		}
	}
	slices.SortFunc(info.PendingInteractions, func(a, b api.Interaction) int { return a.ExpiresAt.Compare(b.ExpiresAt) })
	return info
}
