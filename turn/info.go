package turn

import (
	"slices"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Info describes an active turn at one moment. It is a copy, with times of the host's
// clock, and lists that are empty rather than nil.
type Info struct {
	TurnID    string    `json:"turnId"`
	AgentID   string    `json:"agentId"`
	SessionID string    `json:"sessionId"`
	Owner     string    `json:"owner,omitempty"`
	ParentID  string    `json:"parentTurnId,omitempty"`
	Depth     int       `json:"depth,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	// CurrentTools are the calls that run or wait.
	CurrentTools []CurrentTool `json:"currentTools"`
	// ToolCallCount is how many calls the model has asked for, whatever became of them.
	ToolCallCount int `json:"toolCallCount"`
	// Streaming says that the model streams, as far as the host tells. StreamMs is for how
	// many milliseconds it has in all, StreamLeftMs for how many it may still.
	Streaming    bool  `json:"streaming"`
	StreamMs     int64 `json:"streamMs"`
	StreamLeftMs int64 `json:"streamLeftMs"`
	// TimedOutTools are the names of tools whose time was over, once each.
	TimedOutTools []string `json:"timedOutTools"`
	// PendingInteractions are the questions that people are shown at the moment, in
	// the order in which they expire.
	PendingInteractions []api.Interaction `json:"pendingInteractions"`
}

// CurrentTool is a call of the batch under way.
type CurrentTool struct {
	// CallID is the call's key, as in its events, and Tool the name that it was made by.
	CallID string `json:"toolCallId"`
	Tool   string `json:"toolName"`
	// State is queued, asking or running; queued is also a call that waits with the
	// supervisor, or starts. StartedAt is when work for the call began: that
	// of its tool, or of finding out what the tool is; zero before.
	State     string    `json:"state"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// TimeoutMs is the timeout in force, once the call runs; 0 is infinite.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
	// HumanWaitMs is how long it has waited for humans since it began; its clocks
	// stood still for so long.
	HumanWaitMs int64 `json:"humanWaitMs,omitempty"`
	// Worker is the one of a fleet that was told to start it; empty on this machine.
	Worker string `json:"worker,omitempty"`
	// Running is the call that Config.Start has begun; nil before, and for
	// calls of the turn's own.
	Running Running `json:"-"`
}

// Info describes the turn as its owner sees it now; ok is false if it is over. It waits for
// what the owner does, which is never a call or a human.
func (t *Turn) Info() (info Info, ok bool) {
	ok = t.do(func() { info = t.describe() })
	return info, ok
}

func (t *Turn) describe() Info {
	info := t.info
	info.ToolCallCount = t.budget.Calls()
	info.CurrentTools = t.batch.current()
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
