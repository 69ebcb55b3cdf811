package call

import (
	"encoding/json"
	"fmt"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/plugin/handshake"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/internal/redact"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// maxAnswerBytes leaves room for what is around an answer in its message: a larger
// message than 4 MiB is refused by the gRPC of other languages.
const maxAnswerBytes = handshake.MaxMessageBytes - 64<<10

// put waits for the answer of a human.
func (o *owner) put(question spec.Question) {
	warning := ""
	answer, err := o.p.Request.Ask(o.lifetime, question).Passable(maxAnswerBytes)
	switch {
	case err != nil:
		warning = err.Error()
	case question.Secret:
		warning = o.hide(answer) // before the tool has it
	}
	o.send(answered{question: question.ID, answer: answerOf(o.p.ID, question.ID, answer), warning: warning})
}

// hide keeps the answer to a secret question out of sight from now on. A
// warning says that it cannot be.
func (c *Call) hide(a spec.Answer) (warning string) {
	secret := string(a.Value)
	if text := ""; json.Unmarshal(a.Value, &text) == nil {
		secret = text
	}
	if secret == "" {
		return ""
	}
	if err := c.p.Mask.Add(secret); err != nil {
		return fmt.Sprintf("an answer cannot be kept out of the output: it has fewer than %d bytes, or too many", redact.MinBytes)
	}
	return ""
}

func answerOf(call, id string, a spec.Answer) *pluginv1.AnswerRequest {
	r := &pluginv1.AnswerRequest{CallId: call, InteractionId: id, Outcome: pluginv1.AnswerRequest_OUTCOME_ANSWERED, Value: a.Value, Meta: a.Meta}
	switch a.Denied {
	case "":
	case api.OutcomeTimedOut:
		r.Outcome, r.Reason, r.Value = pluginv1.AnswerRequest_OUTCOME_TIMED_OUT, a.Denied, nil
	default:
		r.Outcome, r.Reason, r.Value = pluginv1.AnswerRequest_OUTCOME_DENIED, a.Denied, nil
	}
	return r
}
