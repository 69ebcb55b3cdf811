package call

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/plugin/handshake"
	"github.com/toolhost/toolhost/internal/text"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/wirejson"
	"github.com/toolhost/toolhost/supervisor/internal/redact"
	"github.com/toolhost/toolhost/supervisor/spec"
)

const (
	// maxAnswerBytes leaves room for what is around an answer in its message: a larger
	// message than 4 MiB is refused by the gRPC of other languages.
	maxAnswerBytes = handshake.MaxMessageBytes - 64<<10
	// maxDeniedBytes bounds why there is no answer.
	maxDeniedBytes = 4 << 10
)

// put waits for the answer of a human.
func (o *owner) put(question spec.Question) {
	answer, warning := passable(o.p.Request.Ask(o.lifetime, question))
	if warning == "" && question.Secret {
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

// passable is an answer as every tool can read it: what is not JSON, or none at all, would
// be the tool's failure, or never reach it. A warning says so of an answer that is a denial now.
func passable(a spec.Answer) (answer spec.Answer, warning string) {
	if a.Denied != "" {
		a.Denied = text.Begin(strings.ToValidUTF8(a.Denied, "\uFFFD"), maxDeniedBytes)
		return a, ""
	}
	value, err := wirejson.CleanArguments(a.Value)
	if err == nil && len(value) > maxAnswerBytes {
		err = fmt.Errorf("it has %d bytes, at most %d are allowed", len(value), maxAnswerBytes)
	}
	if err != nil {
		return spec.Answer{Denied: api.OutcomeFailed}, "an answer was not passed on to the tool: " + err.Error()
	}
	a.Value = value
	return a, ""
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
