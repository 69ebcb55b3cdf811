package turn

import (
	"slices"

	"github.com/toolhost/toolhost/api"
)

// Info describes an active turn at one moment. It is a copy, with times of the host's
// clock, and lists that are empty rather than nil.
type Info struct {
	api.Turn
	// Running has for each of CurrentTools the call that Config.Start has begun; nil
	// before, and for calls of the turn's own.
	Running []Running `json:"-"`
}

// Info describes the turn as its owner sees it now; ok is false if it is over. It waits for
// what the owner does, which is never a call or a human.
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
