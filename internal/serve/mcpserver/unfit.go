package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

// unfitError says what of a client's answer does not fit what was asked for.
type unfitError struct{ why error }

func (e *unfitError) Error() string { return e.why.Error() }

// unfit is an unfitError for such an answer to a form.
func (f form) unfit(i api.Interaction, given mcpsdk.InputResponse) error {
	result, is := given.(*mcpsdk.ElicitResult)
	if !is || result == nil {
		return nil
	}
	if value := f.answer(result).Value; len(value) > 0 {
		if err := turn.Fits(i, value); err != nil {
			return &unfitError{err}
		}
	}
	return nil
}

// whyNot is a note for the model on a question that the client has not answered.
func whyNot(err error, otherwise string) string {
	if _, is := err.(*unfitError); is { //nolint:errorlint // it is not wrapped
		return "the client's answer was refused, for it does not fit: " + err.Error()
	}
	return otherwise + cut(err.Error(), maxShownBytes)
}

// unfitAmong refuses a request that comes back with an answer that does not fit: the
// question waits for another one.
func (c *call) unfitAmong(state string, answers mcpsdk.InputResponseMap) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(answers)) {
		q := c.questions[key]
		if q == nil || !slices.Contains(q.sent, state) {
			continue
		}
		if err := q.form.unfit(q.asked, answers[key]); err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the answer to " + strconv.Quote(cut(key, maxShownBytes)) + " does not fit: " + err.Error()}
		}
	}
	return nil
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
	own.Meta[exactKey] = schema
	return &own
}

// wholeForms puts the schema back that unjudged has taken out.
func wholeForms(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		p, form := r.GetParams().(*mcpsdk.ElicitParams)
		by, ours := r.GetSession().(*mcpsdk.ServerSession)
		if !form || !ours || p.Meta[exactKey] == nil {
			return next(ctx, method, r)
		}
		own := *p
		own.RequestedSchema, own.Meta = p.Meta[exactKey], maps.Clone(p.Meta)
		delete(own.Meta, exactKey)
		return next(ctx, method, &mcpsdk.ServerRequest[*mcpsdk.ElicitParams]{Session: by, Params: &own})
	}
}
