package turn

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// Kind is what a human is asked for.
type Kind string

// Kinds.
const (
	KindApproval      Kind = "approval"
	KindConfirm       Kind = "confirm" // of something destructive
	KindPassword      Kind = "password"
	KindDeviceCode    Kind = "device_code"
	KindQuestionnaire Kind = "questionnaire" // a tool's own, in mid-call
)

// maxWait is the ceiling of every interaction.
const maxWait = time.Hour

// waits are the default timeouts; a device code's is whoever asks's to name.
var waits = map[Kind]time.Duration{
	KindApproval: 120 * time.Second, KindConfirm: 60 * time.Second, KindPassword: 120 * time.Second,
	KindQuestionnaire: 120 * time.Second,
}

// WaitFor settles an interaction's timeout: asked for, or the kind's own, at
// most an hour. There is none without an end.
func WaitFor(kind Kind, asked time.Duration) (wait time.Duration, warning string, err error) {
	switch {
	case asked < 0 || asked == budget.Infinite:
		return 0, "", fmt.Errorf("interaction %s: a timeout without an end is not possible: give at most %s", kind, maxWait)
	case asked == 0 && waits[kind] == 0:
		return 0, "", fmt.Errorf("interaction %s: give a timeout of at most %s", kind, maxWait)
	case asked == 0:
		return waits[kind], "", nil
	case asked > maxWait:
		return maxWait, fmt.Sprintf("interaction %s: a timeout of %s is over the ceiling: %s it is", kind, asked, maxWait), nil
	}
	return asked, "", nil
}

// Outcomes of an interaction.
const (
	OutcomeAnswered  = "answered"
	OutcomeDenied    = "denied"
	OutcomeTimedOut  = "timeout"
	OutcomeHeadless  = "headless"
	OutcomeCancelled = "cancelled" // the call or turn ended first
)

// Interaction is a question to a human that waits for an answer.
type Interaction struct {
	ID     string          `json:"interactionId"`
	TurnID string          `json:"turnId"`
	CallID string          `json:"toolCallId"`
	Tool   string          `json:"toolName"`
	Kind   Kind            `json:"kind"`
	Prompt string          `json:"prompt"`
	Schema json.RawMessage `json:"schema,omitempty"`
	// Arguments are the call's, for an approval.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Policy is what the call may touch.
	Policy    *supervisor.Policy `json:"policy,omitempty"`
	TimeoutMs int64              `json:"timeoutMs"`
	ExpiresAt time.Time          `json:"expiresAt"`
	// Secret: the answer is shown and kept nowhere.
	Secret bool `json:"secret,omitempty"`
}

// Answer is a human's.
type Answer struct {
	// Approve is the answer to a yes or no. Value answers what has a schema.
	Approve bool
	Value   json.RawMessage
	// Always approves this tool for the rest of the turn.
	Always bool
	// By is who answered, for the record.
	By string
}

// Interactor asks a human. Ask waits for the answer, or for ctx's end: then
// somebody else has answered, or nobody in time. An error means that it cannot
// ask; the interaction goes on to wait for others.
type Interactor interface {
	Ask(ctx context.Context, i Interaction) (Answer, error)
}

// pending is an interaction that the owner keeps.
type pending struct {
	Interaction
	began  time.Time
	timer  *time.Timer
	cancel context.CancelFunc
	done   func(outcome string, a Answer)
}

// request opens an interaction; done is called once by the owner with what came
// of it. Nothing ever approves by itself.
func (t *Turn) request(i Interaction, wait time.Duration, done func(outcome string, a Answer)) {
	now := t.now()
	i.ID, i.TurnID, i.TimeoutMs, i.ExpiresAt = rand.Text(), t.info.TurnID, wait.Milliseconds(), now.Add(wait).UTC()
	p := &pending{Interaction: i, began: now, done: done}
	t.pendings[i.ID] = p
	t.emit(t.interactionEvent(AuditRequested, p), nil)
	if t.headless {
		t.close(p, OutcomeHeadless, Answer{By: "headless"})
		return
	}
	t.budget.Waiting(now)
	t.armDeadline()
	t.emitPending(p, true)
	request := t.interactionEvent(EventInteractionRequest, p)
	request.Prompt, request.Schema, request.TimeoutMs, request.ExpiresAt = i.Prompt, i.Schema, i.TimeoutMs, &i.ExpiresAt
	t.emit(request, nil)
	t.flush() // nobody is asked what is not on record
	p.timer = time.AfterFunc(wait, func() { t.post(func() { t.close(p, OutcomeTimedOut, Answer{By: "timeout"}) }) })
	t.ask(p)
}

// ask has the turn's interactor try, beside whoever else may answer.
func (t *Turn) ask(p *pending) {
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	if t.m.config.Interactor == nil {
		return
	}
	t.helpers.Go(func() {
		a, err := t.m.config.Interactor.Ask(ctx, p.Interaction)
		if err == nil {
			t.post(func() { t.settle(p.ID, a) })
		}
	})
}

// Answer answers a pending interaction; an error says that it is not, or no
// longer, pending.
func (t *Turn) Answer(id string, a Answer) error {
	err := errNotPending
	t.do(func() { err = t.settle(id, a) })
	return err
}

var errNotPending = fmt.Errorf("the interaction is not pending: it was answered, has timed out, or never was")

func (t *Turn) settle(id string, a Answer) error {
	p := t.pendings[id]
	if p == nil {
		return errNotPending
	}
	outcome := OutcomeDenied
	if a.Approve || len(a.Value) > 0 {
		outcome = OutcomeAnswered
	}
	t.close(p, outcome, a)
	return nil
}

// close ends an interaction, once.
func (t *Turn) close(p *pending, outcome string, a Answer) {
	if t.pendings[p.ID] != p {
		return
	}
	delete(t.pendings, p.ID)
	if p.timer != nil {
		p.timer.Stop()
		p.cancel()
		t.budget.Resumed(t.now())
		t.armDeadline()
		response := t.interactionEvent(EventInteractionResponse, p)
		response.Outcome, response.By = outcome, a.By
		t.emit(response, nil)
		t.emitPending(p, false)
	}
	kind := AuditAnswered
	if outcome == OutcomeTimedOut {
		kind = AuditTimedOut
	}
	audit := t.interactionEvent(kind, p)
	audit.Outcome, audit.By = outcome, a.By
	t.emit(audit, nil)
	p.done(outcome, a)
}

func (t *Turn) emitPending(p *pending, is bool) {
	e := t.interactionEvent(EventInteractionPending, p)
	e.Pending, e.Presentation = &is, "tool"
	if p.Kind == KindQuestionnaire {
		e.Presentation = "questionnaire"
	}
	t.emit(e, nil)
}

func (t *Turn) interactionEvent(kind string, p *pending) Event {
	return Event{Kind: kind, CallID: p.CallID, Tool: p.Tool, InteractionID: p.ID, Interaction: p.Kind}
}
