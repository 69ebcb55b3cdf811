package turn

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

// pending is an interaction that the owner keeps. Its answer is handed to done
// and kept nowhere.
type pending struct {
	api.Interaction
	timer  *time.Timer
	cancel context.CancelFunc
	check  func(json.RawMessage) error
	done   func(outcome string, a api.Answer)
	// left takes the place of done when the call is over, and has the question stay
	// open for the turn; nil is for one that ends with its call.
	left   func(outcome string, a api.Answer)
	stays  bool // it has, and nobody waits for it
	aside  bool // it was before people, who now see another one, and comes back to them
	wait   time.Duration
	raised bool
	// known is an answer that has come already, or nil; a question that cannot have one
	// has no such function.
	known func() *api.Answer
	// covered is what an answer for more than one call is kept for; nil is for none.
	covered *approvable
	// nth is the number of the call in its batch, from 1, for a question whether it may
	// begin; 0 for any other.
	nth int
}

// request opens an interaction, whose id it sets; done is called once by the owner
// with what came of it. Nothing ever approves by itself: all that a
// headless turn takes is a declared default.
func (t *Turn) request(p *pending, done func(outcome string, a api.Answer)) {
	if p.stays && t.pendings[p.ID] == p {
		p.waitAgain(t, done)
		return
	}
	if p.known != nil {
		if a := p.known(); a != nil {
			done(api.OutcomeAnswered, *a)
			return
		}
	}
	p.stays = false
	i := p.Interaction
	i.ID, i.TurnID, i.Owner, i.TimeoutMs = rand.Text(), t.info.TurnID, t.info.Owner, p.wait.Milliseconds()
	i.Always = t.lastsFor(p.covered)
	p.Interaction, p.done = i, done
	p.check, p.Default = readSchema(i)
	if _, can := t.m.config.Interactor.(ClientInteractor); i.Kind.OfClient() && !can {
		done(api.OutcomeFailed, api.Answer{By: "no client of MCP"})
		return
	}
	if t.people.miss(i) {
		audit := t.interactionEvent(api.AuditRequested, p)
		audit.Outcome, audit.By, audit.Default = api.OutcomeHeadless, api.OutcomeHeadless, p.Default
		t.emit(audit, nil)
		done(api.OutcomeHeadless, api.Answer{Value: p.Default, By: api.OutcomeHeadless})
		return
	}
	t.pendings[i.ID] = p
	t.m.asking.Store(i.ID, t)
	t.waiting(t.budget.Waiting)
	_, serial := t.m.config.Interactor.(OneAtATime)
	if serial {
		setAside(t.pendings)
	}
	if serial && (t.raised() || p.nth > sureOf(t.batch)) {
		t.unraised.add(p)
		return
	}
	t.raise(p)
}

// people are those who may be there for a turn: nobody if it is headless, but for a client's
// human who opens addresses.
type people struct{ headless, open bool }

// miss says that nobody can be asked this.
func (p people) miss(i api.Interaction) bool {
	opening := i.Request != nil && i.Request.URL != ""
	return p.headless && !i.Kind.OfClient() && !(p.open && opening)
}

// raised says that a question is before people now.
func (t *Turn) raised() bool {
	for _, p := range t.pendings {
		if p.raised && !p.aside {
			return true
		}
	}
	return false
}

// raise puts the question to people; its time begins.
func (t *Turn) raise(p *pending) {
	p.raised, p.ExpiresAt = true, t.now().Add(p.wait).UTC()
	t.emit(t.interactionEvent(api.AuditRequested, p), nil)
	t.emitPending(p, true)
	request := t.interactionEvent(api.EventInteractionRequest, p)
	request.Prompt, request.Schema, request.Default = p.Prompt, p.Schema, p.Default
	request.TimeoutMs, request.ExpiresAt = p.TimeoutMs, &p.ExpiresAt
	t.emit(request, nil)
	t.flush() // nobody is asked what is not on record
	p.armTimeout(t)
	t.ask(p)
}

// ask has the turn's interactor try, beside others who may answer.
func (t *Turn) ask(p *pending) {
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	if t.m.config.Interactor == nil {
		return
	}
	i := p.Interaction
	if p.stays {
		i.ExpiresAt = time.Time{} // with the turn
	}
	t.helpers.Go(func() {
		a, err := t.m.config.Interactor.Ask(ctx, i)
		if err != nil && !p.Kind.OfClient() {
			return
		}
		if err != nil {
			a = api.Answer{Unanswered: api.OutcomeFailed}
		}
		t.post(func() {
			if err := t.settle(p.ID, a); err != nil { // what does not fit is not a yes
				t.close(p, api.OutcomeFailed, api.Answer{By: a.By, Unfit: err.Error()})
			}
		})
	})
}

// Answer answers a pending interaction. The error is ErrNotPending if it is not
// pending. Any other error says why the answer is invalid; the interaction then
// stays pending.
func (t *Turn) Answer(id string, a api.Answer) error {
	err := ErrNotPending
	t.do(func() { err = t.settle(id, a) })
	return err
}

// Expire ends all pending interactions as if they had timed out.
func (t *Turn) Expire() {
	t.do(func() {
		for _, p := range t.pendings {
			t.close(p, api.OutcomeTimedOut, api.Answer{By: "timeout"})
		}
	})
}

// ErrNotPending is returned by Answer if the interaction is not pending.
var ErrNotPending = errors.New("the interaction is not pending: it was answered, has timed out, or never existed")

const (
	// maxAnswerBytes bounds an answer, maxByBytes the name of who gave it.
	maxAnswerBytes = 64 << 10
	maxByBytes     = 128
)

func (t *Turn) settle(id string, a api.Answer) error {
	p := t.pendings[id]
	if p == nil || !p.raised {
		return ErrNotPending
	}
	switch a.Unanswered {
	case "":
	case api.OutcomeDismissed, api.OutcomeFailed, api.OutcomeTimedOut, api.OutcomeHeadless:
		t.close(p, a.Unanswered, api.Answer{By: a.By, Refusal: a.Refusal, Meta: a.Meta})
		return nil
	default:
		return fmt.Errorf("bug: %q does not say why there is no answer", a.Unanswered)
	}
	most := maxAnswerBytes
	if p.Kind.OfClient() {
		most = maxRequestBytes
	}
	if len(a.Value) > most {
		return fmt.Errorf("the answer has %d bytes: give at most %d", len(a.Value), most)
	}
	if err := p.fit(&a); err != nil {
		return fmt.Errorf("the answer does not fit: %w", err)
	}
	if err := t.checkAlways(p, a); err != nil {
		return err
	}
	if !a.Approve && len(a.Value) == 0 {
		t.close(p, api.OutcomeDenied, a)
		return nil
	}
	if p.lastsFor(a) != "" && p.covered.deniedIn(t) {
		a.Always, a.For, a.SameArguments = false, "", false // nothing is kept for a tool that may not be called
	}
	if p.lastsFor(a) != "" {
		return t.approveAlways(p, a)
	}
	t.close(p, api.OutcomeAnswered, a)
	return nil
}

// fit holds an answer to what was asked for. What only wants a yes or no takes it
// as a value, too; anything else there is a mistake, and no denial. Null is not a
// value where none is needed: for a yes or no, and to deny what it does not fit.
func (p *pending) fit(a *api.Answer) error {
	if p.Kind.OfClient() {
		if len(a.Value) == 0 {
			return errors.New("a client of MCP answers this, with the result of the request")
		}
		return nil
	}
	yesNo := len(p.Schema) == 0 && !p.Secret
	if isNull(a.Value) && (yesNo || !a.Approve && p.check(a.Value) != nil) {
		a.Value = nil // as clients write it who leave nothing out
	}
	switch {
	case len(a.Value) == 0 && a.Approve && !yesNo:
		return errors.New("a value is asked for: give one")
	case len(a.Value) == 0:
		return nil
	case !yesNo:
		return p.check(a.Value)
	}
	var yes bool
	if json.Unmarshal(a.Value, &yes) != nil {
		return errors.New("a yes or no is asked for: approve it with true, or deny it with false")
	}
	if a.Approve && !yes || a.Denies && yes {
		return errors.New("it says both yes and no: leave out the value")
	}
	a.Approve, a.Value = yes, nil
	return nil
}

func isNull(value json.RawMessage) bool { return string(bytes.TrimSpace(value)) == "null" }

// close ends an interaction, once. One that was never raised is on no record.
func (t *Turn) close(p *pending, outcome string, a api.Answer) {
	if t.pendings[p.ID] != p {
		return
	}
	delete(t.pendings, p.ID)
	t.m.asking.Delete(p.ID)
	a.By = text.Bytes(a.By, maxByBytes)
	if !p.stays {
		t.waiting(t.budget.Resumed)
	}
	if p.raised {
		t.tellClosed(p, outcome, a)
	}
	p.done(outcome, a)
}

func (t *Turn) tellClosed(p *pending, outcome string, a api.Answer) {
	p.timer.Stop()
	p.cancel()
	response := t.interactionEvent(api.EventInteractionResponse, p)
	response.Outcome, response.By = outcome, p.by(a)
	t.emit(response, nil)
	t.emitPending(p, false)
	t.audit(p, outcome, a)
}

// by is who has answered, for the record.
func (p *pending) by(a api.Answer) string {
	if lasts := p.lastsFor(a); lasts != "" {
		return a.By + api.ByFor + lasts
	}
	return a.By
}

// lastsFor is what an answer is for beside one call; empty for that one alone.
func (p *pending) lastsFor(a api.Answer) string {
	if p.covered == nil || !a.Always || !a.Approve {
		return ""
	}
	return cmp.Or(a.For, api.ForTurn)
}

// audit records who decided, if somebody or the clock did.
func (t *Turn) audit(p *pending, outcome string, a api.Answer) {
	kind := api.AuditAnswered
	switch outcome {
	case api.OutcomeCancelled:
		return
	case api.OutcomeTimedOut:
		kind = api.AuditTimedOut
	}
	e := t.interactionEvent(kind, p)
	e.Outcome, e.By = outcome, p.by(a)
	t.emit(e, nil)
}

func (t *Turn) emitPending(p *pending, is bool) {
	e := t.interactionEvent(api.EventInteractionPending, p)
	e.Pending, e.Presentation = &is, "tool"
	if p.Kind == api.KindQuestionnaire {
		e.Presentation = "questionnaire"
	}
	t.emit(e, nil)
}

func (t *Turn) interactionEvent(kind api.EventKind, p *pending) api.Event {
	return api.Event{Kind: kind, CallID: p.CallID, Tool: p.Tool, InteractionID: p.ID, Interaction: p.Kind}
}
