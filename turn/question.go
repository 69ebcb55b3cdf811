package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/plugin/schema"
	"github.com/toolhost/toolhost/supervisor"
)

// maxPromptBytes bounds a question's text, and its schema.
const maxPromptBytes = 16 << 10

// Question is a host's own question to a human in a turn, such as an escalation, a
// device code or a password.
type Question struct {
	Kind api.InteractionKind
	// Prompt is shown to the human, as plain text.
	Prompt string
	// Schema is the JSON Schema of the answer's value, as in api.Interaction. A
	// questionnaire must have one.
	Schema json.RawMessage
	// Timeout is how long to wait at most, within the configured bounds. 0 means the
	// timeout of the turn, the tool, the configuration or the kind.
	Timeout time.Duration
	// Secret keeps the answer out of the journal and events.
	Secret bool
	// CallID is the ID, as in events, of the call in progress that the question is about;
	// the question ends with the call. Tool is the tool. Both may be empty.
	CallID, Tool string
}

// maxRaised bounds the questions of a turn's host that wait for an answer.
const maxRaised = 64

// Raise asks a human a question of the host and waits for the outcome, which for
// OutcomeAnswered includes the answer. In a headless turn Raise does not wait: the
// outcome is OutcomeHeadless, and Value is the default that the schema declares, if
// any. If ctx or the turn ends, the outcome is OutcomeCancelled. Warning describes a
// clamped timeout. An error says why the question is invalid, or that the turn is
// over.
func (t *Turn) Raise(ctx context.Context, q Question) (api.Raised, error) {
	t.do(func() {
		if tool, ok := t.batch.toolOf(q.CallID); ok {
			q.Tool = tool
		}
	})
	var tool Tool
	if q.Tool != "" {
		tool, _ = t.tool(q.Tool)
	}
	wait, warning, err := t.wait(q.Kind, tool, q.Timeout)
	if err == nil {
		err = q.check()
	}
	if err != nil {
		return api.Raised{}, err
	}
	i := api.Interaction{
		CallID: q.CallID, Tool: q.Tool, Kind: q.Kind, Prompt: q.Prompt, Schema: q.Schema, Secret: q.Secret || q.Kind == api.KindPassword, Host: true,
	}
	s, open := t.await(ctx, t.do, &pending{Interaction: i, wait: wait}, func() bool { err = t.checkRaise(q); return err == nil }, func() {})
	switch {
	case !open:
		return api.Raised{}, errOver
	case err != nil:
		return api.Raised{}, err
	}
	return api.Raised{InteractionID: s.id, Outcome: s.outcome, Approve: s.answer.Approve, Value: s.answer.Value, By: s.answer.By, Warning: warning}, nil
}

// check says what keeps a question from being one.
func (q Question) check() error {
	if q.Kind.OfClient() {
		return fmt.Errorf("%s is for servers to ask of their clients: no host asks for it", q.Kind)
	}
	if len(q.Tool) > maxNameBytes {
		return fmt.Errorf("the tool's name has %d bytes: give one of at most %d", len(q.Tool), maxNameBytes)
	}
	if err := checkSize(q.Prompt, q.Schema); err != nil {
		return err
	}
	if len(q.Schema) == 0 && q.Kind == api.KindQuestionnaire { // of a tool's it would be a yes or no
		return errors.New("a questionnaire needs a schema: give that of its answer, or ask for a yes or no by another kind, such as escalation")
	}
	if len(q.Schema) == 0 {
		return nil
	}
	if _, err := schema.Parse(q.Schema); err != nil {
		return fmt.Errorf("the schema is invalid: %w", err)
	}
	return nil
}

// checkRaise says why a host cannot ask now.
func (t *Turn) checkRaise(q Question) error {
	raised := 0
	for _, p := range t.pendings {
		if p.Host {
			raised++
		}
	}
	_, underWay := t.batch.toolOf(q.CallID)
	switch {
	case raised >= maxRaised:
		return fmt.Errorf("%d questions of the turn's host wait for answers: answer some first", raised)
	case q.CallID != "" && !underWay:
		return fmt.Errorf("no call %q of the turn is under way", q.CallID)
	}
	return nil
}

func checkSize(prompt string, schema json.RawMessage) error {
	if len(prompt) > maxPromptBytes || len(schema) > maxPromptBytes {
		return errors.New("the question is too long: its text and its schema may have 16 KiB each")
	}
	return nil
}

// settled is what came of an interaction.
type settled struct {
	id      string
	outcome string
	answer  api.Answer
}

// await opens an interaction, as request does, and waits for its end. do has the owner open it,
// which runs begin before it, and that may refuse, and end after it. open is
// false if the turn is over.
func (t *Turn) await(ctx context.Context, do func(func()) bool, p *pending, begin func() bool, end func()) (s settled, open bool) {
	answered := make(chan settled, 1)
	open = do(func() {
		if t.reason != "" || !begin() {
			answered <- settled{outcome: api.OutcomeCancelled}
			return
		}
		t.request(p, func(outcome string, a api.Answer) {
			end()
			answered <- settled{id: p.ID, outcome: outcome, answer: a}
		})
	})
	if !open {
		return settled{outcome: api.OutcomeCancelled}, false
	}
	select {
	case s := <-answered:
		return s, true
	case <-ctx.Done():
	}
	t.do(func() { t.endWithCall(p) })
	select {
	case s := <-answered: // of a human's, if it came first
		return s, true
	default: // the turn is over
		return settled{outcome: api.OutcomeCancelled}, true
	}
}

// question puts a tool's own question to a human. It runs on the call's
// goroutine.
func (b *batch) question(ctx context.Context, e *entry, q supervisor.Question) supervisor.Answer {
	if q.Reach != "" {
		return b.askReach(ctx, e, q)
	}
	if len(q.Requests) > 0 {
		return b.requests(ctx, e, inputsOf(q.Requests))
	}
	kind := api.KindQuestionnaire
	if q.Secret {
		kind = api.KindPassword
	}
	if err := checkSize(q.Prompt, q.Schema); err != nil {
		return supervisor.Answer{Denied: err.Error()}
	}
	wait, warning, err := b.t.wait(kind, e.tool, q.Timeout)
	if err != nil {
		return supervisor.Answer{Denied: err.Error()}
	}
	wait, cut := e.call.Until.cut(wait, b.t.now())
	i := api.Interaction{CallID: e.key, Tool: e.call.Tool, Kind: kind, Prompt: q.Prompt, Schema: q.Schema, Secret: q.Secret}
	answer := reply(q, b.open(ctx, e, i, wait, warning, func() {}))
	switch {
	case answer.Denied == api.OutcomeHeadless:
		b.t.post(func() { e.unasked = true })
	case answer.Denied == api.OutcomeTimedOut && cut:
		b.t.post(func() { e.notes = append(e.notes, "nobody answered the tool in time: "+e.call.Until.Why) })
	}
	return answer
}

// open puts an interaction of a call that runs, and waits for its end. put is called by
// the turn's owner as it is put.
func (b *batch) open(ctx context.Context, e *entry, i api.Interaction, wait time.Duration, warning string, put func()) settled {
	inOrder := func(f func()) bool { return b.afterEvents(e.running, f) }
	s, _ := b.t.await(ctx, inOrder, &pending{Interaction: i, wait: wait}, func() bool {
		put()
		return b.hold(e, warning)
	}, func() { b.goOn(e) })
	return s
}

// hold stops the turn's clock of tool time for a call whose question waits for
// a human; questions may overlap. False if the call is over.
func (b *batch) hold(e *entry, warning string) bool {
	if e.stage != stageRunning {
		return false
	}
	e.noteSetting(warning)
	if e.questions == 0 {
		e.heldSince = b.t.now()
		b.count(e, false)
	}
	e.questions++
	return true
}

// noteSetting has the result report a timeout that was clamped.
func (e *entry) noteSetting(warning string) {
	if warning != "" {
		e.notes, e.settings = append(e.notes, warning), append(e.settings, warning)
	}
}

// goOn ends what hold began.
func (b *batch) goOn(e *entry) {
	now := b.t.now()
	e.held = e.humanWait(now)
	e.heldSince = now
	e.questions--
	if e.questions == 0 && !e.place.rests {
		b.count(e, true)
	}
}

// noteUnasked has a result say that its tool has asked where nobody is, if the tool
// itself has decided how it ends then: what has ended it otherwise says more.
func (e *entry) noteUnasked(r *api.Result) {
	if !e.unasked {
		return
	}
	e.notes = append(e.notes, "the tool asked a human something, and nobody was there to answer")
	switch r.Status {
	case api.StatusOK, api.StatusToolError, api.StatusInvalidArgs, api.StatusCrashed, api.StatusNoResult, api.StatusProtocolError:
		r.Reason = api.ReasonHeadless
	}
}

func reply(q supervisor.Question, s settled) supervisor.Answer {
	switch {
	case (s.outcome == api.OutcomeAnswered || s.outcome == api.OutcomeHeadless) && len(s.answer.Value) > 0:
		return supervisor.Answer{Value: s.answer.Value, Meta: s.answer.Meta}
	case s.outcome == api.OutcomeAnswered && len(q.Schema) == 0:
		return supervisor.Answer{Value: json.RawMessage(strconv.FormatBool(s.answer.Approve)), Meta: s.answer.Meta}
	case s.outcome == api.OutcomeAnswered, s.outcome == api.OutcomeDenied:
		return supervisor.Answer{Denied: string(api.ReasonUser), Meta: s.answer.Meta}
	}
	return supervisor.Answer{Denied: s.outcome, Meta: s.answer.Meta}
}
