package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/toolhost/toolhost/api"
)

// Health tells whether the daemon is there.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	return ask[api.Health](ctx, c, http.MethodGet, "/api/health", nil)
}

// Ready tells whether calls can be made; if not, the error says why.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/api/ready", nil, nil)
}

// Tools returns the catalogue, and why configured tools are missing from it.
func (c *Client) Tools(ctx context.Context) (api.Tools, error) {
	return ask[api.Tools](ctx, c, http.MethodGet, "/api/tools", nil)
}

// Workers returns the workers of the daemon's fleet; of a daemon without one the error
// says so, see IsNotFound.
func (c *Client) Workers(ctx context.Context) (api.Workers, error) {
	return ask[api.Workers](ctx, c, http.MethodGet, "/api/workers", nil)
}

// DrainWorker has a worker of the daemon's fleet take no more calls, and end when it has
// none. It does not wait for that.
func (c *Client) DrainWorker(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/workers/", name, "/drain"), nil, nil)
}

// RemoveWorker takes a worker out of the daemon's fleet at once: what it runs is ended,
// and its key does not let it in any more.
func (c *Client) RemoveWorker(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/workers/", name, "/remove"), nil, nil)
}

// Tool returns the part of the catalogue that is of one name: at most one tool, or
// why it is missing. The daemon describes no other tool for it.
func (c *Client) Tool(ctx context.Context, name string) (api.Tools, error) {
	return ask[api.Tools](ctx, c, http.MethodGet, "/api/tools?"+url.Values{"name": {name}}.Encode(), nil)
}

// Begin begins a turn, which End must end. One that nobody speaks of any more is
// ended by the daemon after a while.
func (c *Client) Begin(ctx context.Context, spec api.TurnSpec) (api.Turn, error) {
	return ask[api.Turn](ctx, c, http.MethodPost, "/api/turns", spec)
}

// Run runs a batch and returns a result for each call, in their order. When ctx
// ends first, the daemon aborts the turn. No byte of the answer comes before all calls have
// ended: through a proxy that does not wait as long, use RunEvents.
func (c *Client) Run(ctx context.Context, turnID string, calls []api.Call) ([]*api.Result, error) {
	var results api.Results
	err := c.call(ctx, http.MethodPost, endpoint("/api/turns/", turnID, "/calls"), api.Batch{Calls: some(calls)}, &results)
	return normalize(results.Results), err
}

// RunTurn runs a batch in a turn of its own, and returns a result for each call, in their
// order, once the turn is over. When ctx ends first, the daemon aborts the turn.
func (c *Client) RunTurn(ctx context.Context, spec api.TurnSpec, calls []api.Call) ([]*api.Result, error) {
	var results api.Results
	err := c.call(ctx, http.MethodPost, callsPath, turnOf(spec, calls), &results)
	return normalize(results.Results), err
}

const callsPath = "/api/calls"

func turnOf(spec api.TurnSpec, calls []api.Call) api.BatchTurn {
	return api.BatchTurn{TurnSpec: spec, Batch: api.Batch{Calls: some(calls)}}
}

// RunAgain is Run that makes calls again which have failed, if again wants them to
// be; budget.Retry's Again does where their results call them retryable. They are
// made in the same turn, whose repeat guard does not count them, and whose limit of
// calls does.
func (c *Client) RunAgain(ctx context.Context, turnID string, calls []api.Call, again api.Again) ([]*api.Result, error) {
	return api.RunAgain(ctx, calls, again, func(ctx context.Context, attempt int, calls []api.Call) ([]*api.Result, error) {
		for i := range calls {
			calls[i].Retry = calls[i].Retry || attempt > 1
		}
		return c.Run(ctx, turnID, calls)
	})
}

// normalize undoes what JSON adds to results: nothing structured
// is not a null there.
func normalize(results []*api.Result) []*api.Result {
	for _, r := range results {
		if r != nil && string(r.Structured) == "null" {
			r.Structured = nil
		}
	}
	return results
}

// some is a list that is never null in JSON.
func some(calls []api.Call) []api.Call { return append([]api.Call{}, calls...) }

// RunEvents is Run that also shows the turn's events meanwhile, in order. show
// may hold up the stream, but never the calls.
func (c *Client) RunEvents(ctx context.Context, turnID string, calls []api.Call, show func(api.Record)) ([]*api.Result, error) {
	return c.runEvents(ctx, endpoint("/api/turns/", turnID, "/calls"), api.Batch{Calls: some(calls)}, show)
}

// RunTurnEvents is RunTurn that also shows the turn's events meanwhile, in order; the first
// one names the turn. show may hold up the stream, but never the calls.
func (c *Client) RunTurnEvents(ctx context.Context, spec api.TurnSpec, calls []api.Call, show func(api.Record)) ([]*api.Result, error) {
	return c.runEvents(ctx, callsPath, turnOf(spec, calls), show)
}

// ErrBrokenOff is in the error of a batch that had begun, and whose stream ended before its
// results: the daemon has died or is out of reach. Either ends the batch's calls.
var ErrBrokenOff = errors.New("the stream broke off before the results")

func (c *Client) runEvents(ctx context.Context, path string, body any, show func(api.Record)) ([]*api.Result, error) {
	stream, err := c.open(ctx, http.MethodPost, path, body, 0)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	for {
		frame, err := stream.frame()
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrBrokenOff, err)
		case frame.kind == "results":
			var results api.Results
			err := json.Unmarshal(frame.data, &results)
			return normalize(results.Results), err
		}
		event, err := frame.event()
		if err != nil {
			return nil, err
		}
		show(event)
	}
}

// Streaming tells the daemon that the model begins to stream, or has ended, and
// describes the turn then. An error says that the model's time in the turn is used up,
// or that the turn is over; when it is used up the daemon aborts the turn.
func (c *Client) Streaming(ctx context.Context, turnID string, on bool) (api.Turn, error) {
	return ask[api.Turn](ctx, c, http.MethodPost, endpoint("/api/turns/", turnID, "/model"), api.Model{Streaming: on})
}

// End ends a turn and returns once nothing of it runs any more.
func (c *Client) End(ctx context.Context, turnID string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/turns/", turnID, "/end"), nil, nil)
}

// Abort aborts a turn's calls; again, while they end, it kills them at once.
func (c *Client) Abort(ctx context.Context, turnID string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/turns/", turnID, "/abort"), nil, nil)
}

// AbortCall aborts one call; the turn goes on.
func (c *Client) AbortCall(ctx context.Context, turnID, callID string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/turns/", turnID, "/abort-tool/", callID), nil, nil)
}

// Active lists the active turns, oldest first.
func (c *Client) Active(ctx context.Context) ([]api.Turn, error) {
	list, err := c.Running(ctx)
	return list.Turns, err
}

// Running is Active with the processes that wait for calls.
func (c *Client) Running(ctx context.Context) (api.Turns, error) {
	return ask[api.Turns](ctx, c, http.MethodGet, "/api/turns/active", nil)
}

// Turn describes an active turn.
func (c *Client) Turn(ctx context.Context, turnID string) (api.Turn, error) {
	return ask[api.Turn](ctx, c, http.MethodGet, endpoint("/api/turns/", turnID), nil)
}

// Raise asks a human in a turn and returns the outcome. A question that nobody
// answers is not an error. When ctx ends first, the daemon takes the question back.
func (c *Client) Raise(ctx context.Context, turnID string, q api.Question) (api.Raised, error) {
	return ask[api.Raised](ctx, c, http.MethodPost, endpoint("/api/turns/", turnID, "/interactions"), q)
}

// Interactions lists the questions that wait for a human, the most urgent
// first.
func (c *Client) Interactions(ctx context.Context) ([]api.Interaction, error) {
	var list api.Interactions
	err := c.call(ctx, http.MethodGet, "/api/interactions", nil, &list)
	return list.Interactions, err
}

// Answer answers a question.
func (c *Client) Answer(ctx context.Context, interactionID string, a api.Answer) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/interactions/", interactionID, "/answer"), a, nil)
}

// Approvals lists what people have approved for more than one call, the oldest first.
func (c *Client) Approvals(ctx context.Context) ([]api.Approval, error) {
	var list api.Approvals
	err := c.call(ctx, http.MethodGet, "/api/approvals", nil, &list)
	return list.Approvals, err
}

// RevokeApproval takes one back: what goes by it is asked about again.
func (c *Client) RevokeApproval(ctx context.Context, approvalID string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/approvals/", approvalID, "/revoke"), nil, nil)
}

// LoginLink makes a link for one browser.
func (c *Client) LoginLink(ctx context.Context) (api.LoginLink, error) {
	return ask[api.LoginLink](ctx, c, http.MethodPost, "/api/login-links", nil)
}

// IsNotFound is true for an error that says that something is not there, or no
// longer.
func IsNotFound(err error) bool {
	refused, ok := errors.AsType[*api.Error](err)
	return ok && (refused.Status == http.StatusNotFound || refused.Code == "not_found") // an error in a stream has no status
}
