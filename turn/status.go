package turn

import (
	"encoding/json"

	"github.com/toolhost/toolhost/supervisor"
)

// StatusTool is the name of the built-in tool by which a model learns how the
// turn stands. It takes no arguments and changes nothing.
const StatusTool = "session_status"

// Status is what session_status answers.
type Status struct {
	CallCount     int      `json:"callCount"`
	CallsLeft     int      `json:"callsLeft"`
	TimedOutTools []string `json:"timedOutTools"`
	ToolTimeMs    int64    `json:"toolTimeMs"`
	HumanWaitMs   int64    `json:"humanWaitMs"`
	// RemainingMs is what calls may still take of the turn; null if unbounded.
	RemainingMs *int64 `json:"remainingMs"`
	Host        any    `json:"host,omitempty"`
}

func (t *Turn) status(c Call) *supervisor.Result {
	now := t.now()
	s := Status{
		CallCount: t.budget.Calls(), CallsLeft: t.budget.CallsLeft(), TimedOutTools: append([]string{}, t.info.TimedOutTools...),
		ToolTimeMs: t.budget.ToolTime(now).Milliseconds(), HumanWaitMs: t.budget.HumanWait(now).Milliseconds(),
	}
	if left, ok := t.budget.Remaining(now); ok {
		s.RemainingMs = new(left.Milliseconds())
	}
	if t.m.config.Health != nil {
		s.Host = t.m.config.Health()
	}
	r := supervisor.Verdict{CallID: c.ID, Tool: c.Tool, Status: supervisor.StatusOK}.Result()
	r.Structured, _ = json.Marshal(s)
	return r
}
