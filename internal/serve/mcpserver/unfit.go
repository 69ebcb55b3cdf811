package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/turn"
)

// unfitError says what of a client's answer does not fit what was asked for.
type unfitError struct{ why error }

func (e *unfitError) Error() string { return e.why.Error() }

// unfit is an unfitError for such an answer to what a human is asked.
func (f form) unfit(i api.Interaction, given mcpsdk.InputResponse) error {
	if i.Kind.OfClient() {
		return nil
	}
	result, is := given.(*mcpsdk.ElicitResult)
	if !is || result == nil {
		return &unfitError{errors.New("want an answer with an action")}
	}
	answer := f.answer(result)
	switch {
	case answer.Unanswered != api.OutcomeFailed && len(answer.Value) == 0:
		return nil
	case answer.Unanswered != api.OutcomeFailed:
		if err := turn.Fits(i, answer.Value); err != nil {
			return &unfitError{err}
		}
		return nil
	case result.Action != "accept":
		return &unfitError{fmt.Errorf("want the action accept, decline or cancel, not %q", cut(result.Action, maxShownBytes))}
	}
	return &unfitError{errors.New("want a value in JSON")}
}

// whyNot is a note for the model on a question that the client has not answered.
func whyNot(err error, otherwise string) string {
	if _, is := err.(*unfitError); is { //nolint:errorlint // it is not wrapped
		return "the client's answer was refused because it does not fit: " + err.Error()
	}
	return otherwise + cut(err.Error(), maxShownBytes)
}

// maxAgain bounds how often a question is asked once more for its answer's sake.
const maxAgain = 3

// again says whether the question is asked once more, since the answer does not fit; its
// next words say why.
func (q *question) again(answer mcpsdk.InputResponse) bool {
	err := q.form.unfit(q.asked, answer)
	if err == nil || q.unfit == maxAgain {
		return false
	}
	q.unfit++
	if p, is := q.params.(*mcpsdk.ElicitParams); is {
		own := *p
		own.Message = "The last answer does not fit: " + err.Error() + ".\n\n" + q.message
		q.params = &own
	}
	return true
}

// unjudged is a form whose answer the SDK passes on whatever it is. It is judged in the
// words of all who can be asked, and with its formats.
func unjudged(p *mcpsdk.ElicitParams) *mcpsdk.ElicitParams {
	schema, is := p.RequestedSchema.(json.RawMessage)
	if !is {
		return p
	}
	own := *p
	own.RequestedSchema, own.Meta = nil, maps.Clone(p.Meta)
	if own.Meta == nil {
		own.Meta = mcpsdk.Meta{}
	}
	own.Meta[verbatim.Key] = schema
	return &own
}

// wholeRequests puts the schema of a form back that unjudged has taken out, and has a request for
// the client's model written as its server has written it.
func wholeRequests(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		by, _ := r.GetSession().(*mcpsdk.ServerSession)
		switch p := r.GetParams().(type) {
		case *mcpsdk.ElicitParams:
			if p.Meta[verbatim.Key] != nil {
				own := *p
				own.RequestedSchema, own.Meta = p.Meta[verbatim.Key], maps.Clone(p.Meta)
				delete(own.Meta, verbatim.Key)
				r = &mcpsdk.ServerRequest[*mcpsdk.ElicitParams]{Session: by, Params: &own}
			}
		//lint:ignore SA1019 clients may still have a model
		case *mcpsdk.CreateMessageWithToolsParams:
			if raw, is := p.Meta[verbatim.Key].(json.RawMessage); is {
				r = &mcpsdk.ServerRequest[*verbatim.Sampling]{Session: by, Params: &verbatim.Sampling{CreateMessageWithToolsParams: p, Raw: raw}}
			}
		}
		return next(ctx, method, r)
	}
}
