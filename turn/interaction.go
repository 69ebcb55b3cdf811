package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// maxWait is the ceiling of every interaction.
const maxWait = time.Hour

// waits are the default timeouts; the asker names a device code's.
var waits = map[api.InteractionKind]time.Duration{
	api.KindApproval: 120 * time.Second, api.KindConfirm: 60 * time.Second, api.KindPassword: 120 * time.Second,
	api.KindQuestionnaire: 120 * time.Second, api.KindEscalation: escalation().Default,
}

func escalation() budget.Profile {
	p, _ := budget.ForOperation(budget.OpEscalate)
	return p
}

// WaitFor settles an interaction's timeout: asked for, or the kind's own, at
// most an hour; an escalation's is that of the profile hitl_escalate. There is
// none without an end.
func WaitFor(kind api.InteractionKind, asked time.Duration) (wait time.Duration, warning string, err error) {
	least := time.Duration(0)
	if kind == api.KindEscalation {
		least = escalation().Min
	}
	switch {
	case asked < 0 || asked == budget.Infinite:
		return 0, "", fmt.Errorf("interaction %s: a timeout without an end is not possible: give at most %s", kind, maxWait)
	case asked == 0 && waits[kind] == 0:
		return 0, "", fmt.Errorf("interaction %s: give a timeout of at most %s", kind, maxWait)
	case asked == 0:
		return waits[kind], "", nil
	case asked > maxWait:
		return maxWait, fmt.Sprintf("interaction %s: a timeout of %s is over the ceiling: %s it is", kind, asked, maxWait), nil
	case asked < least:
		return least, fmt.Sprintf("interaction %s: a timeout of %s is too short: %s it is", kind, asked, least), nil
	}
	return asked, "", nil
}

// Interaction is a question to a human that waits for an answer.
type Interaction struct {
	ID     string              `json:"interactionId"`
	TurnID string              `json:"turnId"`
	CallID string              `json:"toolCallId"`
	Tool   string              `json:"toolName"`
	Kind   api.InteractionKind `json:"kind"`
	Prompt string              `json:"prompt"`
	// Schema is the JSON Schema of the value wanted; empty asks for yes or no
	// or, of a Secret, for text. Default is what its "default" declares, for
	// people to accept; a headless turn takes it at once.
	Schema  json.RawMessage `json:"schema,omitempty"`
	Default json.RawMessage `json:"default,omitempty"`
	// Arguments are the call's, for an approval.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Policy is what the call may touch.
	Policy    *supervisor.Policy `json:"policy,omitempty"`
	TimeoutMs int64              `json:"timeoutMs"`
	ExpiresAt time.Time          `json:"expiresAt"`
	// Secret: the answer, one value, is shown and kept nowhere.
	Secret bool `json:"secret,omitempty"`
}

// Answer is a human's.
type Answer struct {
	// Approve is the answer to a yes or no. Value, of at most 64 KiB, answers
	// what has a schema, and must fit it.
	Approve bool
	Value   json.RawMessage
	// Always approves this tool for the rest of the turn. It counts for
	// approvals only: what destroys something is confirmed each time.
	Always bool
	// By is who answered, for the record.
	By string
	// Unanswered says why nothing was answered, where that is known: then the rest
	// means nothing but By. It is OutcomeDismissed, OutcomeFailed or
	// OutcomeTimedOut.
	Unanswered string
}

// Interactor asks a human. Ask waits for the answer, or for ctx's end: then
// somebody else has answered, or nobody in time. An error means that it cannot
// ask; the interaction goes on to wait for others.
type Interactor interface {
	Ask(ctx context.Context, i Interaction) (Answer, error)
}

// OneAtATime marks an Interactor that shows one question at a time. A turn then
// raises its questions one after another, in the order in which they came up, and
// the time of each begins when it is raised.
type OneAtATime interface {
	Interactor
	OneAtATime()
}
