package httpapi

import (
	"errors"
	"slices"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

func (s *Server) interactions(q *request) error {
	var list []api.Interaction
	for _, info := range s.config.Turns.Active() {
		if q.who.SeesQuestions(info.Owner) {
			list = append(list, info.PendingInteractions...)
		}
	}
	slices.SortFunc(list, func(a, b api.Interaction) int { return a.ExpiresAt.Compare(b.ExpiresAt) })
	return answerList(q, "interactions", slices.Values(list), nil)
}

// raise puts a question of a host to a human. It is taken back if the host goes away:
// nobody is asked what nobody waits for.
func (s *Server) raise(q *request) error {
	t, err := s.activeTurn(q)
	if err != nil {
		return err
	}
	var asked api.Question
	if err := q.decode(&asked); err != nil {
		return err
	}
	if string(asked.Schema) == "null" { // as clients write it who leave nothing out
		asked.Schema = nil
	}
	ctx, stop, err := s.engage(q, t)
	if err != nil {
		return err
	}
	defer stop()
	r, err := t.Raise(ctx, turn.Question{
		Kind: asked.Kind, Prompt: asked.Prompt, Schema: asked.Schema, Timeout: milliseconds(asked.TimeoutMs), Secret: asked.Secret,
		CallID: asked.CallID, Tool: asked.Tool,
	})
	switch {
	case isShutOut(ctx):
		return errShutOut
	case err == nil:
		return q.answer(r)
	case isOver(t):
		return notActive(t.ID())
	}
	return refuse(codeInvalid, printable(err.Error()), "correct the question")
}

// checkUnanswered refuses a reason for no answer that is not one, or has an answer beside it.
func checkUnanswered(a api.Answer) error {
	beside := ""
	switch {
	case a.Unanswered == "":
		return nil
	case a.Unanswered != api.OutcomeDismissed && a.Unanswered != api.OutcomeFailed:
		return refuse(codeInvalid, "unanswered is "+printable(a.Unanswered), "say dismissed or failed, and nothing beside it")
	case a.Approve, a.Denies:
		beside = "approve"
	case len(a.Value) > 0:
		beside = "value"
	case a.Always:
		beside = "always"
	case a.For != "":
		beside = "for"
	case a.SameArguments:
		beside = "sameArguments"
	default:
		return nil
	}
	return refuse(codeInvalid, beside+" stands beside unanswered", "answer, or say why there is no answer: leave out one of them")
}

// answer is what a human has decided. Its value is given on and kept nowhere.
func (s *Server) answer(q *request) error {
	var said struct {
		api.Answer
		Approve *bool `json:"approve"`
	}
	if err := q.decode(&said); err != nil {
		return err
	}
	a := said.Answer
	a.Approve = said.Approve != nil && *said.Approve
	a.Denies = said.Approve != nil && !a.Approve
	if err := checkUnanswered(a); err != nil {
		return err
	}
	id := q.r.PathValue("interactionId")
	t, ok := s.config.Turns.Asking(id)
	err := turn.ErrNotPending
	if ok && !q.who.Answers(t.Owner()) {
		return refuse(codeForbidden, "nobody answers for calls of their own", "have somebody else with the role approve do it, or an administrator")
	}
	if ok {
		a.By = q.who.on()
		err = t.Answer(id, a) // which the record of the turn tells
	}
	if err != nil && !errors.Is(err, turn.ErrNotPending) {
		return refuse(codeInvalid, printable(err.Error()), "answer again: the question still waits")
	}
	if err != nil {
		return refuse(codeNotFound, "no question "+printable(id)+" waits for an answer", "see /api/interactions; it was answered, has timed out, or its call is over")
	}
	return q.answer(api.Done{OK: true, TurnID: t.ID(), InteractionID: id})
}
