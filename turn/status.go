package turn

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// StatusTool is the name of the built-in tool that tells a model the status of
// its turn and session. It takes no arguments and is read-only.
const StatusTool = "session_status"

// Status is the result of session_status. It covers all turns of the session,
// except that CallsLeft and RemainingMs are the turn's.
type Status struct {
	CallCount int `json:"callCount"`
	// CallsLeft is how many more calls the turn may make.
	CallsLeft int `json:"callsLeft"`
	// TimedOutTools are the tools whose calls timed out, as by ShortNames.
	TimedOutTools []string `json:"timedOutTools"`
	// ToolTimeMs is the time during which at least one call ran, HumanWaitMs the time
	// spent waiting for humans.
	ToolTimeMs  int64 `json:"toolTimeMs"`
	HumanWaitMs int64 `json:"humanWaitMs"`
	// RemainingMs is the time left for calls of the turn; null if unbounded.
	RemainingMs *int64 `json:"remainingMs"`
	// StreamLeftMs is the time that the model may still stream, if the host reports
	// when it streams.
	StreamLeftMs *int64 `json:"streamLeftMs,omitempty"`
	// Host is the value of ShortHealth.
	Host any `json:"host,omitempty"`
}

// maxPartBytes bounds the names and the host's health in a status as JSON, which
// has less than 600 bytes then.
const maxPartBytes = 160

// ShortNames returns the last of names for which a status has room, the last first,
// and the number of those left out.
func ShortNames(names []string) []string {
	short, room := []string{}, maxPartBytes
	for i, name := range slices.Backward(names) {
		raw, _ := json.Marshal(name)
		if room -= len(raw) + 1; room < 0 {
			return append(short, fmt.Sprintf("... and %d more", i+1))
		}
		short = append(short, name)
	}
	return short
}

// ShortHealth returns the value of health, or nil if it is too long for a status.
func ShortHealth(health func() any) any {
	if health == nil {
		return nil
	}
	raw, err := json.Marshal(health())
	if err != nil || len(raw) > maxPartBytes {
		return nil
	}
	return json.RawMessage(raw)
}

func (t *Turn) status(c Call) *api.Result {
	now := t.now()
	s := Status{
		CallCount: t.budget.Calls(), CallsLeft: t.budget.CallsLeft(), TimedOutTools: ShortNames(t.info.TimedOutTools),
		ToolTimeMs: t.budget.ToolTime(now).Milliseconds(), HumanWaitMs: t.budget.HumanWait(now).Milliseconds(),
	}
	t.budget.session.tell(&s, now)
	if left, ok := t.budget.Remaining(now); ok {
		s.RemainingMs = new(left.Milliseconds())
	}
	if t.budget.IsStreaming() || t.budget.StreamTime(now) > 0 {
		s.StreamLeftMs = new(t.budget.StreamLeft(now).Milliseconds())
	}
	s.Host = ShortHealth(t.m.config.Health)
	r := supervisor.Verdict{CallID: c.ID, Tool: c.Tool, Status: api.StatusOK}.Result()
	r.Structured, _ = json.Marshal(s)
	return r
}
