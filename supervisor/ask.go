package supervisor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/redact"
)

// maxQuestions bounds those of one call that wait for an answer.
const maxQuestions = 8

// onAsk puts a tool's question to the asker that the request names. The call's
// clocks stand still until the answer.
func (c *Call) onAsk(ask *pluginv1.Ask, unfit error, now time.Time) {
	if unfit != nil && c.p.Request.Ask != nil {
		if !c.acks.deny(ask.GetInteractionId(), "the question's schema cannot be passed on: "+unfit.Error()) {
			c.stop(outcome.CauseProtocol, api.ReasonTooManyQuestions, now)
		}
		return
	}
	if c.p.Request.Ask == nil || c.state != stateRunning {
		if !c.acks.deny(ask.GetInteractionId(), "headless") {
			c.stop(outcome.CauseProtocol, api.ReasonTooManyQuestions, now)
		}
		return
	}
	if c.questions == maxQuestions {
		c.stop(outcome.CauseProtocol, api.ReasonTooManyQuestions, now)
		return
	}
	c.questions++
	c.clock.Paused(now)
	c.moveTimer(now)
	question := Question{
		ID: ask.GetInteractionId(), Prompt: c.p.Veil.Text(ask.GetPrompt()), Schema: c.p.Veil.JSON(ask.GetSchema()),
		Timeout: prepare.Milliseconds(ask.GetTimeoutMs()), Secret: ask.GetSecret(),
	}
	c.helpers.Go(func() {
		answer := c.p.Request.Ask(c.lifetime, question)
		in := input{kind: inAnswered, question: question.ID, answer: answer}
		if question.Secret {
			in.warning = c.hideAnswer(answer) // before the tool has it
		}
		c.send(in)
	})
}

func (c *Call) onAnswered(in input, now time.Time) {
	c.questions--
	c.warn(in.warning)
	c.clock.Resumed(now)
	c.moveTimer(now)
	c.acks.reply(answerOf(c.id, in.question, in.answer))
}

func answerOf(call, id string, a Answer) *pluginv1.AnswerRequest {
	r := &pluginv1.AnswerRequest{CallId: call, InteractionId: id, Outcome: pluginv1.AnswerRequest_OUTCOME_ANSWERED, Value: a.Value}
	switch a.Denied {
	case "":
	case "timeout":
		r.Outcome, r.Reason, r.Value = pluginv1.AnswerRequest_OUTCOME_TIMED_OUT, a.Denied, nil
	default:
		r.Outcome, r.Reason, r.Value = pluginv1.AnswerRequest_OUTCOME_DENIED, a.Denied, nil
	}
	return r
}

// moveTimer keeps the launcher's own timer behind the call's clock. While somebody
// is waited for, it allows for the longest wait.
func (c *Call) moveTimer(now time.Time) {
	if c.p.Timeout.Timeout == budget.Infinite {
		c.warnOf(lateTimer, c.tree.SetTimer(0))
		return
	}
	left := budget.AnswerWithin(c.clock.Remaining(now), c.p.Grace)
	if c.questions > 0 {
		left += budget.MaxHumanWait
	}
	c.warnOf(lateTimer, c.tree.SetTimer(left))
}

const lateTimer = "the call may be ended too early"

// Verdict is what a call came to that was decided without running it.
type Verdict struct {
	CallID, Tool string
	// Status is StatusDenied, StatusCancelled or the like; Reason and Decider
	// as in Result.
	Status  api.Status
	Reason  api.Reason
	Decider string
	// Message is the whole paragraph for the model, with its prefix.
	Message string
	// HumanWait is how long somebody was waited for.
	HumanWait time.Duration
}

// Result makes the result of such a call: nothing ran, nothing was changed.
func (v Verdict) Result() *api.Result {
	r := &api.Result{
		SchemaVersion: api.SchemaVersion, CallID: v.CallID, Tool: v.Tool, Instance: "fresh",
		Status: v.Status, Code: outcome.CodeName(v.Status), Reason: v.Reason, Decider: v.Decider, Message: v.Message,
		Warnings: []string{}, Files: []api.File{}, Content: []api.Content{}, Kill: api.Kill{Stage: "none", Signals: []string{}},
		Timing: api.Timing{HumanWaitMs: v.HumanWait.Milliseconds()},
	}
	r.Sandbox = prepare.EmptyReceipt()
	r.Retry = api.Retry{Retryable: outcome.Retryable(r), SideEffects: "none"}
	return r
}

// hideAnswer keeps the answer to a secret question out of sight from now on. A
// warning says that it cannot be.
func (c *Call) hideAnswer(a Answer) (warning string) {
	secret := string(a.Value)
	if text := ""; json.Unmarshal(a.Value, &text) == nil {
		secret = text
	}
	if secret == "" {
		return ""
	}
	if err := c.p.Veil.Add(secret); err != nil {
		return fmt.Sprintf("an answer cannot be kept out of the output: it has fewer than %d bytes, or too many", redact.MinBytes)
	}
	return ""
}
