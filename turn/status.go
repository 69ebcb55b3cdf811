package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

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

// maxPromptBytes bounds a question's text, and its schema.
const maxPromptBytes = 16 << 10

// question puts a tool's own question to a human. It runs on the call's
// goroutine.
func (b *batch) question(ctx context.Context, e *entry, q supervisor.Question) supervisor.Answer {
	kind := KindQuestionnaire
	if q.Secret {
		kind = KindPassword
	}
	if len(q.Prompt) > maxPromptBytes || len(q.Schema) > maxPromptBytes {
		return supervisor.Answer{Denied: "the question is too long"}
	}
	wait, warning, err := WaitFor(kind, q.Timeout)
	if err != nil {
		return supervisor.Answer{Denied: err.Error()}
	}
	answered := make(chan supervisor.Answer, 1)
	var id string
	posted := b.t.do(func() {
		if e.stage != stageRunning || b.t.reason != "" {
			answered <- supervisor.Answer{Denied: OutcomeCancelled}
			return
		}
		b.t.budget.Release(b.t.now()) // while a human is waited for, no tool time passes
		if warning != "" {
			e.notes = append(e.notes, warning)
		}
		b.t.request(Interaction{
			CallID: e.key, Tool: e.call.Tool, Kind: kind, Prompt: q.Prompt, Schema: q.Schema, Secret: q.Secret,
		}, wait, func(outcome string, a Answer) {
			b.t.budget.Again(b.t.now())
			answered <- reply(q, outcome, a)
		})
		id = b.t.pendingOf(e.key, q.Prompt)
	})
	if !posted {
		return supervisor.Answer{Denied: "cancelled"}
	}
	select {
	case a := <-answered:
		return a
	case <-ctx.Done():
		b.t.post(func() {
			if p := b.t.pendings[id]; p != nil {
				b.t.close(p, OutcomeCancelled, Answer{})
			}
		})
		return supervisor.Answer{Denied: "cancelled"}
	}
}

func (t *Turn) pendingOf(call, prompt string) string {
	newest, id := time.Time{}, ""
	for _, p := range t.pendings {
		if p.CallID == call && p.Prompt == prompt && !p.began.Before(newest) {
			newest, id = p.began, p.ID
		}
	}
	return id
}

func reply(q supervisor.Question, outcome string, a Answer) supervisor.Answer {
	switch {
	case outcome == OutcomeAnswered && len(a.Value) > 0:
		return supervisor.Answer{Value: a.Value}
	case outcome == OutcomeAnswered && len(q.Schema) == 0:
		return supervisor.Answer{Value: json.RawMessage(fmt.Sprint(a.Approve))}
	case outcome == OutcomeAnswered, outcome == OutcomeDenied:
		return supervisor.Answer{Denied: "user"}
	}
	return supervisor.Answer{Denied: outcome}
}
