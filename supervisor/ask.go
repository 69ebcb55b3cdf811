package supervisor

import (
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// maxQuestions bounds those of one call that wait for an answer.
const maxQuestions = 8

// onAsk puts a tool's question to the asker that the request names. The call's
// clocks stand still until the answer.
func (c *Call) onAsk(ask *pluginv1.Ask, unfit error, now time.Time) {
	if unfit != nil && c.request.Ask != nil {
		if !c.acks.deny(ask.GetInteractionId(), "the question's schema cannot be passed on: "+unfit.Error()) {
			c.stop(outcome.CauseProtocol, api.ReasonTooManyQuestions, now)
		}
		return
	}
	if c.request.Ask == nil || c.state != stateRunning {
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
		ID: ask.GetInteractionId(), Prompt: c.veil.Text(ask.GetPrompt()), Schema: c.veil.JSON(ask.GetSchema()),
		Timeout: milliseconds(ask.GetTimeoutMs()), Secret: ask.GetSecret(),
	}
	c.helpers.Go(func() {
		answer := c.request.Ask(c.lifetime, question)
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
	if c.resolution.Timeout == budget.Infinite {
		c.warnOf(lateTimer, c.tree.setTimer(0))
		return
	}
	left := budget.AnswerWithin(c.clock.Remaining(now), c.grace)
	if c.questions > 0 {
		left += budget.MaxHumanWait
	}
	c.warnOf(lateTimer, c.tree.setTimer(left))
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
	r.Sandbox = emptyReceipt()
	r.Retry = api.Retry{Retryable: outcome.Retryable(r), SideEffects: "none"}
	return r
}
